// ranks-agree over what NCCL said: by communicator and member, with the lines that there are.
#include <gmock/gmock.h>

#include "harness/contract/communicators.h"
#include "harness/contract/test_trace.h"

namespace warmgate::contract {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Processes 100 and 101 with the plugin in them, each a member of what it joins.
class Nccl {
 public:
  explicit Nccl(int processes = 2, int api = 5) : api_(api) {
    t_.hello();  // of the engine
    for (int p = 0; p < processes; ++p)
      say("hello", p,
          {{"schema", "events/1.0"},
           {"engine", "warmgate-nccl"},
           {"emits", {"communicator", "collective", "p2p"}}});
  }
  Nccl& join(const std::string& id, int process, int member, int ranks = 2, int nodes = 1) {
    return say("communicator", process,
               {{"communicator", id},
                {"member", member},
                {"ranks", ranks},
                {"nodes", nodes},
                {"api", api_},
                {"status", "made"}});
  }
  Nccl& both(const std::string& id) { return join(id, 0, 0).join(id, 1, 1); }
  Nccl& enter(const std::string& id, int process, int member, const std::string& kind,
              std::int64_t elements, const std::string& type = "float32", std::int64_t root = 0) {
    const std::int64_t op = ops_[{id, member}]++;
    const std::int64_t size = type == "float32" ? 4 : type == "int8" ? 1 : 2;
    json body = {
        {"communicator", id}, {"member", member},     {"op", op},     {"seq", op},
        {"kind", kind},       {"elements", elements}, {"type", type}, {"bytes", elements * size}};
    if (kind == "Broadcast") body["root"] = root;
    return say("collective", process, std::move(body));
  }
  // A member of the same number as its process.
  Nccl& enter(int process, const std::string& kind, std::int64_t elements,
              const std::string& type = "float32", std::int64_t root = 0) {
    return enter("world@1", process, process, kind, elements, type, root);
  }
  Nccl& last(const std::string& id, int process, int member, std::int64_t entered, json more) {
    more.update({{"communicator", id}, {"member", member}, {"entered", entered}, {"last", true}});
    return say("communicator_state", process, std::move(more));
  }
  Nccl& say(const std::string& ev, int process, json body) {
    body["pid"] = 100 + process;
    t_.add(ev, std::move(body), 0, "nccl");
    t_.trace().events.back().rank.reset();
    t_.trace().events.back().source = "nccl" + std::to_string(process);
    return *this;
  }
  Nccl& bye(int processes = 2) {
    for (int p = 0; p < processes; ++p) say("bye", p, json::object());
    t_.bye().exited();
    return *this;
  }
  // What the harness says when it ends a run that stands still.
  Nccl& deadline(std::int64_t later_ms = 10'000) {
    t_.at(t_.trace().events.back().t_ns / 1'000'000 + later_ms);
    t_.add("deadline", {{"phase", "warmup"}, {"kind", "deadline"}}, 0, "harness");
    t_.signalled(9, 0, true);
    return *this;
  }
  Result judge() { return judge_named("ranks-agree", t_); }
  TraceBuilder& builder() { return t_; }

 private:
  TraceBuilder t_;
  int api_;
  std::map<std::pair<std::string, int>, std::int64_t> ops_;
};

TEST(NcclOrder, EqualOrdersAreKeptHoweverTheyInterleave) {
  Nccl n;
  n.both("world@1").join("tp@2", 0, 1).join("tp@2", 1, 0);  // other numbers in the other one
  n.enter(0, "AllReduce", 8).enter("tp@2", 0, 1, "AllGather", 3).enter(0, "AllReduce", 4);
  n.enter("tp@2", 1, 0, "AllGather", 3).enter(1, "AllReduce", 8).enter(1, "AllReduce", 4);
  const Result result = n.bye().judge();
  EXPECT_EQ(result.state, State::kKept) << result.why;
  EXPECT_EQ(result.why, "");
  EXPECT_THAT(result.notes, IsEmpty());
}

TEST(NcclOrder, AnotherKindIsNamedWithItsPositionAndNoHashIsInTheKey) {
  Nccl n;
  n.both("world@00ff");
  for (int p : {0, 1}) n.enter("world@00ff", p, p, "AllReduce", 8);
  n.enter("world@00ff", 0, 0, "AllGather", 4).enter("world@00ff", 1, 1, "AllReduce", 16);
  const Result result = n.bye().judge();
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].key, "world/order");
  EXPECT_EQ(result.findings[0].detail["position"], 1);
  EXPECT_EQ(result.findings[0].events.size(), 2u);
  EXPECT_THAT(result.findings[0].message,
              HasSubstr("part at operation 1: member 0 entered AllGather of 16 B, member 1 "
                        "AllReduce of 64 B"));
}

TEST(NcclOrder, CountAndTypeHaveToBeEqualBytesOfWhatOnlyMovesThem) {
  const auto judged = [](const std::string& kind, std::int64_t a, const std::string& type_a,
                         std::int64_t b, const std::string& type_b) {
    Nccl n;
    n.both("world@1").enter(0, kind, a, type_a).enter(1, kind, b, type_b);
    return n.bye().judge();
  };
  EXPECT_EQ(judged("AllReduce", 8, "float32", 8, "float32").state, State::kKept);
  const Result count = judged("AllReduce", 8, "float32", 9, "float32");
  ASSERT_EQ(count.findings.size(), 1u);
  EXPECT_EQ(count.findings[0].key, "world/size");
  EXPECT_THAT(count.findings[0].seen, HasSubstr("AllReduce of 9 x float32"));
  EXPECT_EQ(judged("AllReduce", 8, "float16", 8, "bfloat16").findings.at(0).key, "world/size");
  EXPECT_EQ(judged("ReduceScatter", 8, "float32", 16, "bfloat16").state, State::kBroken);
  EXPECT_EQ(judged("AllGather", 8, "float32", 16, "bfloat16").state, State::kKept);
  EXPECT_EQ(judged("Broadcast", 8, "float32", 8, "bfloat16").findings.at(0).key, "world/size");
}

TEST(NcclOrder, AnotherRootIsAnotherOperation) {
  Nccl n;
  n.both("world@1").enter(0, "Broadcast", 8, "float32", 0).enter(1, "Broadcast", 8, "float32", 1);
  const Result result = n.bye().judge();
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].key, "world/order");
  EXPECT_THAT(result.findings[0].message, HasSubstr("(root 0 and 1)"));
}

TEST(NcclOrder, AMemberThatEndsWellEntersAsMuchAsTheOthers) {
  Nccl n;
  n.both("world@1").enter(0, "AllReduce", 8).enter(1, "AllReduce", 8).enter(0, "AllReduce", 4);
  const Result result = Nccl(n).bye().judge();
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].seen, "nothing more");
  EXPECT_EQ(n.judge().state, State::kKept) << "who did not end has nothing missing";
  Nccl old(2, 4);  // replays of graphs look like calls there
  old.join("world@1", 0, 0, 2, 2).join("world@1", 1, 1, 2, 2).enter(0, "AllReduce", 8);
  EXPECT_EQ(old.bye().judge().state, State::kKept);
}

TEST(NcclOrder, WhoeverNeverEnteredIsNamedWhereARunHung) {
  Nccl n(4);
  for (int p = 0; p < 4; ++p) n.join("world@1", p, p, 4);
  for (int p = 0; p < 4; ++p) n.enter(p, "AllGather", 2);
  for (int p : {0, 2, 3}) n.enter(p, "AllReduce", 1 << 20);
  const Result result = n.deadline().judge();
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].key, "world/stuck");
  EXPECT_EQ(result.findings[0].message,
            "on 'world' member 1 never entered operation 1, AllReduce of 4.00 MiB; members 0, 2, 3 "
            "wait in it (its last was AllGather of 8 B)");
  EXPECT_EQ(result.findings[0].detail["entered"], json({{"0", 2}, {"1", 1}, {"2", 2}, {"3", 2}}));
}

TEST(NcclOrder, TheRankOfItsProcessIsSaidWhereItIsKnown) {
  Nccl n;
  for (int p : {0, 1})
    n.builder().add(
        "hello",
        {{"schema", "events/1.0"}, {"engine", "e"}, {"pid", 100 + p}, {"emits", json::array()}},
        6 + p);
  n.both("world@1").enter(0, "AllReduce", 8);
  const Result result = n.deadline().judge();
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].rank, 7);
  EXPECT_THAT(result.findings[0].message, HasSubstr("member 1 (rank 7) never entered operation 0"));
}

TEST(NcclOrder, AMemberThatPartedIsBlamedForThatAndNotForBeingBehind) {
  Nccl n;
  n.both("world@1").enter(0, "AllReduce", 8).enter(0, "AllReduce", 4).enter(1, "AllReduce", 4);
  const Result result = n.deadline().judge();
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].key, "world/size");
}

TEST(NcclOrder, WhoIsBehindBecauseItWaitsElsewhereIsAVictim) {
  Nccl n(3);
  for (int p : {0, 1, 2}) n.join("world@1", p, p, 3);
  n.join("tp@2", 0, 0).join("tp@2", 1, 1);
  // 1 never comes to 0 in tp, and 2 waits for both in world.
  n.enter("tp@2", 0, 0, "AllReduce", 8).enter(2, "AllGather", 8);
  const Result result = n.deadline().judge();
  ASSERT_EQ(result.findings.size(), 2u);
  EXPECT_EQ(result.findings[0].key, "world/stuck") << "1 waits nowhere";
  EXPECT_EQ(result.findings[1].key, "tp/stuck");
  Nccl chain;
  chain.both("world@1").both("tp@2");
  chain.enter("tp@2", 0, 0, "AllReduce", 8);  // 0 waits for 1 there, and is behind in nothing
  chain.join("pp@3", 0, 1).join("pp@3", 2, 0);
  chain.enter("pp@3", 2, 0, "AllReduce", 8);  // 2 waits for 0
  const Result judged = chain.deadline().judge();
  ASSERT_EQ(judged.findings.size(), 1u);
  EXPECT_EQ(judged.findings[0].key, "tp/stuck");
  ASSERT_EQ(judged.notes.size(), 1u);
  EXPECT_EQ(judged.notes[0].key, "pp/stuck");
  EXPECT_THAT(judged.notes[0].message, HasSubstr("(it waits itself, on 'tp')"));
  Nccl crossed;  // each waits for the other: nobody is the victim
  crossed.both("world@1").both("tp@2").enter(0, "AllReduce", 8);
  crossed.enter("tp@2", 1, 1, "AllReduce", 8);
  EXPECT_EQ(crossed.deadline().judge().findings.size(), 2u);
}

TEST(NcclOrder, ARunThatWasStillGoingHasNoOneBehind) {
  Nccl n;
  n.both("world@1").enter(0, "AllReduce", 8).enter(1, "AllReduce", 8).enter(0, "AllReduce", 8);
  const Result result = n.deadline(200).judge();
  EXPECT_EQ(result.state, State::kKept);
  ASSERT_EQ(result.notes.size(), 1u);
  EXPECT_EQ(result.notes[0].key, "world/last");
  EXPECT_THAT(result.notes[0].message, HasSubstr("member 0 had entered 2 operations"));
}

TEST(NcclOrder, AFailedRunHasTheLastOperationsAsANote) {
  Nccl n;
  n.both("world@1").enter(0, "AllReduce", 8).enter(0, "AllReduce", 8).enter(1, "AllReduce", 8);
  n.builder().exited(0, 1);
  const Result result = n.judge();
  EXPECT_EQ(result.state, State::kKept);
  ASSERT_EQ(result.notes.size(), 1u);
  EXPECT_EQ(result.notes[0].key, "world/last");
}

TEST(NcclOrder, DroppedLinesBlameNobody) {
  Nccl n;
  n.both("world@1");
  for (int p : {0, 1}) n.enter(p, "AllReduce", 8);
  // Of member 1 a line is missing, and what it says then is another operation's.
  n.enter(0, "AllGather", 1).enter(0, "AllReduce", 4);
  n.say("collective", 1,
        {{"communicator", "world@1"},
         {"member", 1},
         {"op", 2},
         {"seq", 1},
         {"kind", "AllReduce"},
         {"elements", 4},
         {"type", "float32"},
         {"bytes", 16}});
  const Result result = n.deadline().judge();
  EXPECT_EQ(result.state, State::kKept) << "both entered three";
  EXPECT_THAT(result.why, HasSubstr("more operations than lines"));
}

TEST(NcclOrder, PastTheLinesTheLastRecordSaysWhoIsBehind) {
  Nccl n;
  n.both("world@1");
  for (int p : {0, 1}) n.enter(p, "AllReduce", 8);
  const json all = {{"digest", "aa"},
                    {"kind", "AllReduce"},
                    {"elements", 1 << 20},
                    {"type", "float32"},
                    {"bytes", 4 << 20}};
  json behind = all;
  behind["kind"] = "AllGather";
  behind["digest"] = "bb";
  n.last("world@1", 0, 0, 5001, all).last("world@1", 1, 1, 5000, behind);
  n.last("world@1", 0, 0, 5000, behind);  // the older of two that take turns
  const Result result = n.deadline().judge();
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].key, "world/stuck");
  EXPECT_THAT(result.findings[0].message,
              HasSubstr("member 1 never entered operation 5000, AllReduce of 4.00 MiB; member 0 "
                        "waits in it (its last was AllGather"));
}

TEST(NcclOrder, PastTheLinesDigestsSayThatOrdersDiffer) {
  const auto judged = [](const char* at_512, const char* at_1024) {
    Nccl n;
    n.both("world@1");
    for (int p : {0, 1}) n.enter(p, "AllReduce", 8);
    const auto state = [&](int p, std::int64_t entered, const std::string& digest) {
      n.say("communicator_state", p,
            {{"communicator", "world@1"}, {"member", p}, {"entered", entered}, {"digest", digest}});
    };
    state(0, 512, "aa");
    state(1, 512, at_512);
    state(0, 1024, "bb");
    state(1, 1024, at_1024);
    return n.bye().judge();
  };
  EXPECT_EQ(judged("aa", "bb").state, State::kKept);
  const Result late = judged("aa", "cc");
  ASSERT_EQ(late.findings.size(), 1u);
  EXPECT_EQ(late.findings[0].key, "world/order");
  EXPECT_THAT(late.findings[0].message, HasSubstr("somewhere between operation 512 and 1023"));
  EXPECT_THAT(judged("dd", "cc").findings.at(0).message,
              HasSubstr("somewhere between operation 1 and 511"));
}

TEST(NcclOrder, ASendWithoutItsRecvIsANoteWhereARunHung) {
  const auto judged = [](bool hangs, bool received) {
    Nccl n;
    n.both("world@1");
    const auto p2p = [&](int p, const char* kind) {
      n.say("p2p", p,
            {{"communicator", "world@1"},
             {"member", p},
             {"op", 0},
             {"kind", kind},
             {"peer", 1 - p},
             {"elements", 8},
             {"type", "float32"},
             {"bytes", 32}});
    };
    p2p(0, "Send");
    if (received) p2p(1, "Recv");
    return (hangs ? n.deadline() : n.bye()).judge();
  };
  EXPECT_THAT(judged(true, true).notes, IsEmpty());
  EXPECT_THAT(judged(false, false).notes, IsEmpty());
  const Result result = judged(true, false);
  EXPECT_EQ(result.state, State::kKept) << "no part of the order of collectives";
  ASSERT_EQ(result.notes.size(), 1u);
  EXPECT_EQ(result.notes[0].key, "world/p2p");
  EXPECT_THAT(result.notes[0].message, HasSubstr("1 Send to member 1, which launched 0 Recvs"));
}

TEST(NcclOrder, ATransferThatWaitsBeforeItsLaunchIsANote) {
  Nccl n;
  n.both("world@1").enter(0, "AllReduce", 8).enter(1, "AllReduce", 8);
  n.last("world@1", 0, 0, 1, {{"p2p_called", 4}, {"p2p_launched", 3}});
  n.last("world@1", 1, 1, 1, {{"p2p_called", 3}, {"p2p_launched", 3}});
  const Result result = n.deadline().judge();
  ASSERT_EQ(result.notes.size(), 1u);
  EXPECT_THAT(result.notes[0].message, HasSubstr("called 4 Sends and Recvs, of which 3"));
}

TEST(NcclOrder, NamesThatRepeatAreNumberedAsTheyWereMade) {
  Nccl n;
  n.both("tp@9").both("tp@1").enter("tp@1", 0, 0, "AllReduce", 8).enter("@7", 0, 0, "AllReduce", 1);
  const View view(n.builder());
  std::vector<std::string> labels;
  for (const Communicator& each : communicators_of(view)) labels.push_back(each.label);
  EXPECT_THAT(labels, ElementsAre("tp", "tp#2", "communicator"));
}

TEST(NcclOrder, PartOfTheMembersIsSaidAndNotJudgedFurther) {
  Nccl n;
  n.join("world@1", 0, 0, 16, 2).join("world@1", 1, 1, 16, 2);
  for (int p : {0, 1}) n.enter(p, "AllReduce", 8);
  const Result result = n.bye().judge();
  EXPECT_EQ(result.state, State::kKept);
  EXPECT_THAT(result.why, HasSubstr("of 1 communicator not every member was seen"));
}

TEST(NcclOrder, NothingOfNcclIsNotObservedWhereItWasAskedFor) {
  TraceBuilder t;
  t.hello().bye().exited().add("probe", {{"status", "asked"}, {"probes", {"nccl"}}}, 0, "harness");
  const Result result = judge_named("ranks-agree", t);
  EXPECT_EQ(result.state, State::kNotObserved);
  EXPECT_THAT(result.why, HasSubstr("custom all-reduce, symmetric memory"));
  TraceBuilder cuda;
  cuda.hello().bye().exited().add("probe", {{"status", "asked"}, {"probes", {"cuda"}}}, 0,
                                  "harness");
  EXPECT_EQ(judge_named("ranks-agree", cuda).state, State::kNotApplicable);
  Nccl alone(1);
  alone.join("world@1", 0, 0, 1).enter(0, "AllReduce", 8);
  EXPECT_EQ(alone.bye(1).judge().state, State::kNotApplicable) << "a communicator of one";
  Nccl idle;
  EXPECT_EQ(idle.both("world@1").bye().judge().state, State::kNotObserved);
}

// Whatever a trace claims: no exception, no long loop.
TEST(NcclOrder, HostileTracesAreJudged) {
  Nccl n;
  n.both("world@1");
  const std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  n.say("collective", 0,
        {{"communicator", "world@1"}, {"member", 0}, {"op", huge}, {"kind", 5}, {"bytes", -1}});
  n.say("collective", 0, {{"communicator", "world@1"}, {"member", -4}, {"op", 0}});
  n.say("collective", 0, {{"communicator", json::array()}, {"member", 0}});
  n.say("communicator_state", 1,
        {{"communicator", "world@1"},
         {"member", 1},
         {"entered", -9},
         {"digest", 7},
         {"last", "yes"}});
  n.say("p2p", 1, {{"communicator", "world@1"}, {"member", 1}, {"peer", "x"}, {"op", huge}});
  n.join("world@1", 0, 1);  // two processes, one member
  const Result result = n.deadline().judge();
  EXPECT_EQ(result.state, State::kKept);
  EXPECT_THAT(result.why, HasSubstr("two processes"));
}

}  // namespace
}  // namespace warmgate::contract
