// What servers alone can break: stores-declared, speculation-live, answers-differ.
#include <gtest/gtest.h>

#include "harness/contract/test_trace.h"

namespace warmgate::contract {
namespace {

using namespace testing;

struct Server : TraceBuilder {
  explicit Server(std::vector<std::string> emits = {"ready", "http", "compile", "store", "request",
                                                    "counter", "phase_begin", "phase_end"}) {
    hello(0, std::move(emits));
  }
  Server& store(json body) {
    add("store", std::move(body), 0, "store");
    return *this;
  }
  Server& counter(const std::string& name, double value) {
    add("counter", {{"name", name}, {"value", value}}, 0, "http");
    return *this;
  }
  Server& served(bool ok = true) {
    add("request", {{"id", "greedy-1"}, {"ok", ok}}, 0, "http");
    return *this;
  }
};

json prepared(const std::string& store, const std::string& asked, bool reached,
              const std::string& found) {
  return {{"store", store},       {"path", "/run/" + store}, {"status", "prepared"},
          {"state_asked", asked}, {"state_found", found},    {"reached", reached},
          {"note", "why"}};
}

TEST(StoresDeclared, KeptNotAskedAndNotReached) {
  EXPECT_EQ(judge_named("stores-declared", Server()).state, State::kNotApplicable);
  Server unasked;
  unasked.store({{"store", "triton"}, {"path", "/h"}, {"status", "prepared"}, {"files", 3}});
  EXPECT_EQ(judge_named("stores-declared", unasked).state, State::kNotApplicable);
  Server kept;
  kept.store(prepared("triton", "cold", true, "cold"));
  EXPECT_EQ(judge_named("stores-declared", kept).state, State::kKept);
  EXPECT_TRUE(judge_named("stores-declared", kept).notes.empty());
  kept.store(prepared("engine", "warm", false, "cold"));
  const Result result = judge_named("stores-declared", kept);
  EXPECT_EQ(result.state, State::kKept);
  ASSERT_EQ(result.notes.size(), 1u);
  EXPECT_EQ(result.notes[0].key, "state/engine");
  EXPECT_EQ(result.notes[0].expected, "warm");
  EXPECT_EQ(result.notes[0].seen, "cold: why");
}

TEST(StoresDeclared, WrittenElsewhere) {
  Server t;
  t.store(prepared("triton", "cold", true, "cold"));
  t.store({{"store", "triton"},
           {"path", "/home/u/.triton"},
           {"status", "outside"},
           {"files", 2},
           {"example", "h/add.cubin"}});
  const Result result = judge_named("stores-declared", t);
  EXPECT_EQ(result.state, State::kBroken);
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].key, "triton");
  EXPECT_EQ(result.findings[0].expected, "in /run/triton");
  EXPECT_EQ(result.findings[0].seen, "2 files at /home/u/.triton, e.g. h/add.cubin");
  EXPECT_EQ(result.findings[0].events.size(), 2u);
}

TEST(StoresDeclared, AWarmStoreThatWasNotUsed) {
  Server t;
  t.store(prepared("triton", "warm", true, "warm"));
  t.store({{"store", "triton"},
           {"path", "/run/triton"},
           {"status", "rebuilt"},
           {"files", 4},
           {"held", 3},
           {"example", "h/add.cubin"}});
  const Result result = judge_named("stores-declared", t);
  EXPECT_EQ(result.state, State::kBroken);
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].key, "rebuilt/triton");
  EXPECT_EQ(result.findings[0].message,
            "the store triton was warm with 3 files, and was not used: 4 files made before ready, "
            "e.g. h/add.cubin");
}

TEST(StoresDeclared, GrowthOfWhatHoldsNoCompilationsIsANote) {
  Server t;
  t.store({{"store", "hub"}, {"path", "/h"}, {"status", "grew"}, {"files", 1}, {"example", "x"}});
  const Result result = judge_named("stores-declared", t);
  EXPECT_EQ(result.state, State::kKept);
  EXPECT_EQ(result.notes.at(0).key, "grew/hub");
}

TEST(StoresDeclared, WhatIsFetchedInATimedPhase) {
  const json fetched = {
      {"store", "hub"}, {"path", "/h"}, {"status", "downloaded"}, {"files", 1}, {"example", "x"}};
  Server t;
  t.store(fetched);
  const Result result = judge_named("stores-declared", t);
  EXPECT_EQ(result.state, State::kBroken);
  EXPECT_EQ(result.findings.at(0).key, "downloaded/hub");
  Server cold;
  cold.store(prepared("hub", "cold", true, "cold")).store(fetched);
  EXPECT_EQ(judge_named("stores-declared", cold).state, State::kKept);
  EXPECT_EQ(judge_named("stores-declared", cold).notes.size(), 1u);
}

TEST(SpeculationLive, WhatIsNotThereIsNotJudged) {
  EXPECT_EQ(judge_named("speculation-live", Server().served()).state, State::kNotApplicable);
  Server unserved;
  unserved.counter("drafts", 0).served(false);
  EXPECT_EQ(judge_named("speculation-live", unserved).state, State::kNotObserved);
}

TEST(SpeculationLive, CountersThatAgree) {
  Server t;
  t.served().counter("drafts", 10).counter("draft_tokens", 70).counter("accepted_tokens", 70);
  const Result result = judge_named("speculation-live", t);
  EXPECT_EQ(result.state, State::kKept);
  EXPECT_TRUE(result.notes.empty());
}

TEST(SpeculationLive, CountersThatDoNot) {
  Server more;
  more.served().counter("draft_tokens", 70).counter("accepted_tokens", 71);
  Result result = judge_named("speculation-live", more);
  EXPECT_EQ(result.state, State::kBroken);
  EXPECT_EQ(result.findings.at(0).key, "accepted_tokens/draft_tokens");
  EXPECT_EQ(result.findings.at(0).seen, "71 and 70");
  Server fewer;
  fewer.served().counter("drafts", 5).counter("draft_tokens", 4);
  EXPECT_EQ(judge_named("speculation-live", fewer).findings.at(0).key, "drafts/draft_tokens");
  Server negative;
  negative.served().counter("drafts", -1);
  EXPECT_EQ(judge_named("speculation-live", negative).findings.at(0).key, "drafts");
}

TEST(SpeculationLive, NoDraftsAndNoneAcceptedAreNotes) {
  Server none;
  none.served().counter("drafts", 0).counter("draft_tokens", 0).counter("accepted_tokens", 0);
  Result result = judge_named("speculation-live", none);
  EXPECT_EQ(result.state, State::kKept);
  ASSERT_EQ(result.notes.size(), 1u);
  EXPECT_EQ(result.notes[0].key, "drafts");
  EXPECT_EQ(result.notes[0].seen, "0 in 1 request");
  Server dummy;
  dummy.served().counter("drafts", 3).counter("draft_tokens", 21).counter("accepted_tokens", 0);
  result = judge_named("speculation-live", dummy);
  EXPECT_EQ(result.state, State::kKept);
  EXPECT_EQ(result.notes.at(0).key, "accepted_tokens");
}

struct Answers : Server {
  Answers& answer(const std::string& text, json more = json::object()) {
    json body = {
        {"id", "x"}, {"ok", true}, {"class", "greedy"}, {"tokens", 8}, {"text_sha256", text}};
    body.update(more);
    add("request", body, 0, "http");
    return *this;
  }
  Result judged() { return judge_named("answers-differ", *this); }
};

TEST(AnswersDiffer, OneAnswerToEverybodyIsANote) {
  Answers t;
  t.answer("a").answer("a");
  EXPECT_EQ(t.judged().state, State::kNotApplicable);
  t.answer("a");
  Result result = t.judged();
  EXPECT_EQ(result.state, State::kKept);
  ASSERT_EQ(result.notes.size(), 1u);
  EXPECT_EQ(result.notes[0].seen, "one answer to 3 prompts");
  EXPECT_EQ(result.notes[0].events.size(), 3u);
  t.answer("b");
  EXPECT_TRUE(t.judged().notes.empty());
}

TEST(AnswersDiffer, WhatProvesNothingIsLeftOut) {
  Answers t;
  t.answer("a").answer("a");
  t.answer("a", {{"ok", false}}).answer("a", {{"tokens", 7}}).answer("a", {{"class", "grammar"}});
  t.answer("").answer("a", {{"tokens", "many"}});
  EXPECT_EQ(t.judged().state, State::kNotApplicable);
}

}  // namespace
}  // namespace warmgate::contract
