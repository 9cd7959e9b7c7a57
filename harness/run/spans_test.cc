// --probe spans from a scenario to its trace: programs that export spans by hand.
#include "harness/run/spans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/run/testing.h"
#include "harness/verdict/figures.h"

namespace warmgate::run::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using verdict::RunRecord;

class SpanRuns : public Product {
 protected:
  // A program that speaks OTLP with the functions of the stand-in.
  RunRecord run_program(const std::string& body, const std::string& more = "") {
    const std::string folder = (source_dir() / "fixtures/workers/standin").string();
    put("program.py", "import sys, time\nsys.dont_write_bytecode = True\nsys.path.insert(0, '" +
                          folder + "')\nimport spans\n" + body);
    options_.probes = {"spans"};
    return run_one(put(
        "s.yaml", "scenario: s\ntarget: {command: {argv: [python3, program.py]" + more + "}}\n"));
  }
  static const contract::Result& agree(const RunRecord& run) {
    const contract::Result* result = verdict::find_result(run, "spans-agree");
    EXPECT_NE(result, nullptr);
    return *result;
  }
};

TEST_F(SpanRuns, APhaseASpanAndAnExceptionOfAnyProgram) {
  const RunRecord run = run_program(
      "with spans.span('load'):\n  time.sleep(0.02)\n"
      "with spans.span('something else'): pass\n"
      "try:\n  with spans.span('warmup'):\n    raise ValueError('no kernel')\n"
      "except ValueError: sys.exit(3)\n");
  EXPECT_THAT(run.trace.of("span"), SizeIs(3)) << run.reason;
  const auto faults = run.trace.of("fault");
  ASSERT_THAT(faults, SizeIs(1));
  EXPECT_EQ(faults[0]->str("message"), "no kernel");
  EXPECT_EQ(faults[0]->str("phase"), "warmup");
  EXPECT_EQ(faults[0]->str("file"), "program.py");
  EXPECT_EQ(run.outcome, verdict::Outcome::kCrashed);
  EXPECT_EQ(run.phase, "warmup") << "known from spans alone";
  EXPECT_GE(run.figures.at("load_s"), 0.02);
  EXPECT_LT(run.figures.at("load_s"), 5);
  EXPECT_EQ(agree(run).state, contract::State::kKept);
}

TEST_F(SpanRuns, NoSpanIsNotObservedAndNothingElseChanges) {
  const RunRecord run = run_program("pass\n");
  EXPECT_EQ(agree(run).state, contract::State::kNotObserved);
  EXPECT_THAT(agree(run).why, HasSubstr("no span came"));
  EXPECT_THAT(run.trace.of("span"), IsEmpty());
  EXPECT_FALSE(run.figures.count("load_s"));
}

TEST_F(SpanRuns, ABodyThatIsNoneIsToldAndHarmsNobody) {
  const RunRecord run = run_program(
      "assert spans.send(b'\\x0a\\xff\\xff') == 400\nassert spans.send(b'{}', None, 'text/x') == "
      "415\n"
      "assert spans.send(b'{}', None, 'application/json', 'gzip') == 200\n");
  EXPECT_THAT(agree(run).why, HasSubstr("2 requests came and could not be read"));
  for (const verdict::WorkerEnd& worker : run.workers) EXPECT_EQ(worker.exit_code, 0);
}

TEST_F(SpanRuns, AVariableOfTheScenariosOwnWins) {
  const RunRecord run =
      run_program("import os\nassert os.environ[spans.ENDPOINT] == 'http://127.0.0.1:9/x'\n",
                  ", env: {OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: \"http://127.0.0.1:9/x\"}");
  for (const verdict::WorkerEnd& worker : run.workers) EXPECT_EQ(worker.exit_code, 0);
  EXPECT_EQ(agree(run).state, contract::State::kNotObserved);
}

TEST_F(SpanRuns, SecretsInSpansAreMasked) {
  const RunRecord run = run_program(
      "try:\n  with spans.span('load'):\n    raise ValueError('https://me:hunter2hunter2@host/x')\n"
      "except ValueError: pass\n");
  ASSERT_THAT(run.trace.of("fault"), SizeIs(1));
  for (const trace::Event& event : run.trace.events) {
    EXPECT_EQ(trace::to_line(event).find("hunter2"), std::string::npos);
  }
}

}  // namespace
}  // namespace warmgate::run::testing
