#include "harness/target/spans/receiver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <time.h>

#include "harness/target/spans/otlp_for_test.h"
#include "harness/target/spans/python_stack.h"
#include "harness/trace/wire.h"

namespace warmgate::target {
namespace {

using namespace target::testing;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::int64_t wall() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

SpanFacts facts() {
  SpanFacts out;
  out.phases = {{"Load model", "load"}};
  out.pid = "their.pid";
  out.process = "their.name";
  return out;
}

ServedRequest request(std::string body, std::string type = "application/x-protobuf") {
  return {"POST", SpanReceiver::path_of(3), std::move(type), "", std::move(body)};
}

class Received : public ::testing::Test {
 protected:
  Received() : receiver_(facts()) { receiver_.open(sink_); }
  int status(const ServedRequest& asked) { return receiver_.serve(asked).status; }
  std::vector<trace::Event> spans() {
    std::vector<trace::Event> out;
    const trace::Trace all = sink_.trace();
    for (const trace::Event* event : all.of("span")) out.push_back(*event);
    return out;
  }
  trace::Event told() {
    receiver_.close();
    const trace::Trace all = sink_.trace();
    EXPECT_THAT(all.of("probe"), SizeIs(1));
    return *all.of("probe").front();
  }
  KeptEvents sink_;
  SpanReceiver receiver_;
};

TEST_F(Received, ASpanBecomesAnEventOfThisMachinesClock) {
  const std::int64_t now = wall(), here = trace::now_ns();
  const ServedReply reply = receiver_.serve(
      request(wire_request({wire_span("Load model", now - 2'000'000'000, now - 500'000'000,
                                      wire_attribute(9, "code.function", "load_model")),
                            wire_span("Anything", now - 1'000'000, now - 1'000'000)})));
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, "");
  EXPECT_EQ(reply.content_type, "application/x-protobuf");
  ASSERT_THAT(spans(), SizeIs(2));
  const trace::Event load = spans()[0];
  EXPECT_EQ(load.src, "span");
  EXPECT_EQ(load.rank, 3);
  EXPECT_EQ(load.str("name"), "Load model");
  EXPECT_EQ(load.str("phase"), "load");
  EXPECT_EQ(load.num("pid"), 4711);
  EXPECT_EQ(load.str("worker"), "Worker_1");
  EXPECT_EQ(load.str("function"), "load_model");
  EXPECT_EQ(load.real("ms"), 1500);
  EXPECT_NEAR(static_cast<double>(load.t_ns - (here - 2'000'000'000)), 0, 50e6);
  EXPECT_GE(load.res_ns, 1'000'000);
  EXPECT_EQ(spans()[1].str("phase"), "");
  EXPECT_THAT(sink_.trace().emits(), ::testing::Contains("span"));
  EXPECT_EQ(told().str("status"), "attached");
}

TEST_F(Received, NamesThatArePhasesOfOursNeedNoTable) {
  const std::int64_t now = wall();
  EXPECT_EQ(status(request(wire_request({wire_span("warmup", now - 9, now)}))), 200);
  EXPECT_EQ(spans().at(0).str("phase"), "warmup");
}

TEST_F(Received, WhatIsNoRequestOfOtlpIsRefusedByItsStatus) {
  EXPECT_EQ(status({"POST", "/v1/metrics", "application/json", "", "{}"}), 404);
  EXPECT_EQ(status({"POST", "/rank-1/v1/traces", "application/json", "", "{}"}), 404);
  EXPECT_EQ(status({"POST", "/rankx/v1/traces", "application/json", "", "{}"}), 404);
  EXPECT_EQ(status({"GET", "/v1/traces", "application/json", "", ""}), 405);
  EXPECT_EQ(status(request("{}", "text/html")), 415);
  EXPECT_EQ(status(request("{", "application/json")), 400);
  EXPECT_EQ(status(request("\x0a\xff")), 400);
  ServedRequest packed = request("not gzip");
  packed.content_encoding = "gzip";
  EXPECT_EQ(status(packed), 400);
  packed.content_encoding = "br";
  EXPECT_EQ(status(packed), 415);
  EXPECT_EQ(status({"POST", "/v1/traces?x=1", "application/json; charset=utf-8", "", "{}"}), 200);
  EXPECT_EQ(receiver_.serve(request("{}", "application/json")).body, "{}");
  const trace::Event event = told();
  EXPECT_EQ(event.str("status"), "not attached");
  EXPECT_EQ(event.num("refused"), 5);
  EXPECT_THAT(event.str("reason"),
              HasSubstr("5 requests came and could not be read, first: neither"));
}

TEST_F(Received, NothingCameIsSaidAndNeverZero) {
  const trace::Event event = told();
  EXPECT_EQ(event.str("status"), "not attached");
  EXPECT_THAT(event.str("reason"), HasSubstr("no span came"));
  EXPECT_THAT(spans(), IsEmpty());
}

TEST_F(Received, TimesOfAnotherWorldAreNotBelieved) {
  const std::int64_t now = wall();
  EXPECT_EQ(status(request(wire_request({wire_span("a", 0, now), wire_span("b", now, now - 1),
                                         wire_span("c", now - 1, now + 3'600'000'000'000),
                                         wire_span("d", 1, 2), wire_span("e", -5, -3)}))),
            200);
  EXPECT_THAT(spans(), IsEmpty());
  const trace::Event event = told();
  EXPECT_EQ(event.num("implausible"), 5);
  EXPECT_THAT(event.str("reason"), HasSubstr("impossible"));
}

TEST_F(Received, ExceptionsCarryTheirStackUntilWeEndTheRun) {
  const std::string stack =
      "Traceback (most recent call last):\n  File \"/opt/e/worker.py\", line 31, in load\n"
      "    go()\n  File \"/opt/e/model.py\", line 7, in go\n    raise ValueError('x')\nValueError: "
      "x\n";
  const auto sent = [&] {
    const std::int64_t now = wall();
    return request(wire_request(
        {wire_span("Load model", now - 1000, now, wire_exception(now, "ValueError", "x", stack))}));
  };
  EXPECT_EQ(status(sent()), 200);
  receiver_.mark_end();
  EXPECT_EQ(status(sent()), 200);
  ASSERT_THAT(spans(), SizeIs(2));
  const trace::json* before = spans()[0].body.nested("exceptions");
  const std::vector<trace::Event> kept = spans();
  before = kept[0].body.nested("exceptions");
  ASSERT_NE(before, nullptr);
  EXPECT_EQ((*before)[0]["type"], "ValueError");
  EXPECT_EQ((*before)[0]["frames"][0]["function"], "go");
  EXPECT_EQ((*before)[0]["frames"][0]["file"], "model.py");
  EXPECT_EQ((*before)[0]["frames"][0]["line"], 7);
  EXPECT_EQ(kept[1].body.nested("exceptions"), nullptr) << "a consequence of our signal";
}

TEST_F(Received, NoMoreThanItsShareIsKeptOfARun) {
  const std::int64_t now = wall();
  const std::string thousand =
      wire_request(std::vector<std::string>(1000, wire_span("s", now - 9, now)));
  for (int i = 0; i < 21; ++i) EXPECT_EQ(status(request(thousand)), 200);
  EXPECT_THAT(spans(), SizeIs(kMostSpans));
  EXPECT_EQ(told().num("left_out"), 1000);
}

TEST(PythonStack, TheLastTracebackCountsAndOthersAreNone) {
  EXPECT_THAT(innermost_frames(""), IsEmpty());
  EXPECT_THAT(innermost_frames("java.lang.Error\n\tat A.b(A.java:1)\n"), IsEmpty());
  EXPECT_THAT(innermost_frames("  File \"x.py\", line , in f\n  File \"x.py\n"), IsEmpty());
  const auto frames = innermost_frames(
      "Traceback (most recent call last):\n  File \"a.py\", line 1, in first\n\n"
      "During handling of the above exception, another exception occurred:\n\n"
      "Traceback (most recent call last):\n  File \"/x/b.py\", line 2, in <module>\n");
  ASSERT_THAT(frames, SizeIs(1));
  EXPECT_EQ(frames[0].function, "<module>");
  EXPECT_EQ(frames[0].file, "b.py");
  std::string long_one;
  for (int i = 0; i < 500; ++i)
    long_one += "  File \"a.py\", line " + std::to_string(i) + ", in f\n";
  EXPECT_THAT(innermost_frames(long_one), SizeIs(kMostFramesShown));
  EXPECT_EQ(innermost_frames(long_one)[0].line, 499);
}

}  // namespace
}  // namespace warmgate::target
