#include "harness/verdict/metrics.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "harness/scenario/scenario.h"
#include "harness/verdict/gate.h"
#include "harness/verdict/test_run.h"

namespace warmgate::verdict {
namespace {

using namespace testing;
namespace fs = std::filesystem;

class Metrics : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "wg-metrics-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    dir_ = name;
  }
  void TearDown() override { fs::remove_all(dir_); }
  std::vector<Metric> load(const std::string& text) {
    std::ofstream(dir_ / "m.yaml") << text;
    return load_metrics(dir_ / "m.yaml");
  }
  std::vector<scenario::Problem> problems(const std::string& text) {
    try {
      (void)load(text);
    } catch (const scenario::ScenarioError& error) {
      return error.problems();
    }
    return {};
  }
  fs::path dir_;
};

RunRecord with_output(const std::string& head, const std::string& tail = "") {
  RunRecord r = run(Outcome::kPassed);
  r.outputs = {{0, "stderr", head.size(), head, tail, {}}};
  return r;
}

TEST_F(Metrics, ALineOfDataIsAFigure) {
  const auto metrics = load(
      "- {name: weights_gib, source: log, pattern: 'took (?<value>[0-9.,]+) GiB', unit: GiB, "
      "direction: lower}\n"
      "- {name: accepted, source: counter, pattern: spec_accepted}\n"
      "- {name: swa_bytes, source: json, event: kv, pointer: /groups/1/bytes}\n"
      "- {name: tok_s, source: json, pointer: /bench/tok_s}\n");
  ASSERT_EQ(metrics.size(), 4u);
  RunRecord r = with_output("weights took 1.5 GiB\nweights took 2,048.25 GiB\n",
                            "{\"bench\":{\"tok_s\":12}}\n{broken\n");
  contract::testing::TraceBuilder t;
  t.add("counter", {{"name", "spec_accepted"}, {"value", 5}});
  t.add("kv", {{"groups", {{{"bytes", 1}}, {{"bytes", 77}}}}});
  r.trace = t;
  apply_metrics(metrics, r);
  EXPECT_EQ(r.figures.at("weights_gib"), 2048.25);  // the last match counts
  EXPECT_EQ(r.figures.at("accepted"), 5);
  EXPECT_EQ(r.figures.at("swa_bytes"), 77);
  EXPECT_EQ(r.figures.at("tok_s"), 12);
  EXPECT_EQ(r.figure_info.at("weights_gib").unit, "GiB");

  // The gate takes its direction from the metric.
  scenario::GateRule rule;
  rule.regress = scenario::Regress{1, {}};
  const std::map<std::string, scenario::GateRule> rules = {{"weights_gib", rule}};
  GateContext gate;
  gate.rules = &rules;
  RunRecord better = r, worse = r;
  better.figures["weights_gib"] = 1;
  worse.figures["weights_gib"] = 4096;
  EXPECT_EQ(judge_regress(gate, {&r}, {&better}).at(0).verdict, Verdict::kPass);
  EXPECT_EQ(judge_regress(gate, {&r}, {&worse}).at(0).verdict, Verdict::kFail);
}

TEST_F(Metrics, NotFoundIsAbsent) {
  const auto metrics = load(
      "- {name: a, source: log, pattern: 'x=(?<value>\\S+)', stream: stdout}\n"
      "- {name: b, source: log, pattern: 'x=(?<value>\\S+)'}\n"
      "- {name: c, source: json, event: kv, pointer: /bytes}\n");
  RunRecord r = with_output("x=1e999\nx=abc\nx=nan\n");
  contract::testing::TraceBuilder t;
  t.add("kv", {{"bytes", "many"}});
  r.trace = t;
  apply_metrics(metrics, r);
  EXPECT_TRUE(r.figures.empty());
}

TEST_F(Metrics, AHostileLineCostsNeitherStackNorTime) {
  const auto metrics = load("{name: a, source: log, pattern: '(a+)+ (?<value>[0-9]+)$'}");
  RunRecord r = with_output(std::string(1 << 20, 'a') + "\n" + std::string(60, 'a') + "! 7x\n");
  apply_metrics(metrics, r);
  EXPECT_TRUE(r.figures.empty());
}

TEST_F(Metrics, ErrorsComeAllAtOnceWithTheirPlace) {
  const auto all = problems(
      "- {name: kv_tokens, source: log, pattern: '(?<value>x)'}\n"
      "- {name: a, source: log, pattern: '(x)'}\n"
      "- {name: a, source: log, pattern: '(?<value>[x'}\n"
      "- {name: a, source: prometheus}\n"
      "- {name: a, source: json, pointer: nope}\n"
      "- {name: a, source: counter}\n"
      "- {nmae: a, source: counter, pattern: c, direction: up}\n"
      "- 7\n");
  EXPECT_GE(all.size(), 10u);
  EXPECT_EQ(all[0].line, 1);
  EXPECT_EQ(all[1].line, 2);
  EXPECT_EQ(all.back().line, 8);
  EXPECT_EQ(problems("a: [").size(), 1u);
  EXPECT_THROW((void)load_metrics(dir_ / "none.yaml"), scenario::ScenarioError);
}

TEST(GroupNames, AreTakenOut) {
  const auto check = [](const char* pattern, const char* expression, std::size_t group) {
    const NamedGroup g = strip_group_names(pattern, "value");
    EXPECT_EQ(g.expression, expression);
    EXPECT_EQ(g.group, group) << pattern;
  };
  check("a(?<value>b)(c)", "a(b)(c)", 1);
  check("(a)(?:b)(?P<value>c)", "(a)(?:b)(c)", 2);
  check("(?<other>a)(?<value>b)", "(a)(b)", 2);
  check("\\((?<value>b)[(]", "\\((b)[(]", 1);
  check("(?=x)(?!y)(?<value>b)", "(?=x)(?!y)(b)", 1);
  check("(b)", "(b)", 0);
  check("(?<value", "(?<value", 0);
  check("", "", 0);
}

}  // namespace
}  // namespace warmgate::verdict
