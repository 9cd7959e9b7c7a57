// The evidence table in every format, and that what was not seen is never a number.
#include "reports/evidence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "harness/trace/vocabulary.h"
#include "reports/ab.h"
#include "reports/buildkite.h"
#include "reports/json.h"
#include "reports/junit.h"
#include "reports/markdown.h"
#include "reports/sample_report.h"
#include "reports/schema_check.h"

namespace warmgate::reports {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

trace::Event event_at(std::string ev, double seconds, nlohmann::json body, int rank = 0) {
  trace::Event out;
  out.ev = std::move(ev);
  out.t_ns = 1000000000 + static_cast<std::int64_t>(seconds * 1e9);
  out.rank = rank;
  out.src = "log";
  out.body = body;
  return out;
}

// What a server target of two ranks leaves: A dies in profile, B serves.
Sample server_sample() {
  Sample s;
  s.report.command = "warmgate ab vllm.yaml A B";
  s.report.verb = "ab";
  s.report.version = "0.1.0";
  s.report.wall_s = 100;
  ScenarioReport one;
  one.name = "vllm";
  one.path = "vllm.yaml";
  one.reason = "A crashed (1 crashed), B passed (1 passed)";
  one.verdict = s.report.verdict = verdict::Verdict::kPass;
  const auto start = [](verdict::RunRecord& run) {
    run.trace.declared_phases = {"bootstrap", "load",  "profile", "kv",      "warmup",
                                 "capture",   "ready", "serve",   "shutdown"};
    run.trace.events.push_back(
        event_at("hello", 0.1,
                 {{"emits", {"phase_begin", "phase_end", "kv", "ready", "request", "fault"}}}));
    for (const int rank : {0, 1}) {
      run.trace.events.push_back(event_at("phase_begin", 1, {{"phase", "load"}}, rank));
      run.trace.events.push_back(
          event_at("phase_end", 21 + rank, {{"phase", "load"}, {"status", "ok"}}, rank));
      run.trace.events.push_back(event_at("phase_begin", 23, {{"phase", "profile"}}, rank));
    }
    run.trace.events.push_back(event_at("ready", 3, {{"clock", "process"}}));
  };
  verdict::RunRecord crash = sample_crash();
  crash.trace.events.clear();
  crash.contracts.clear();
  crash.first_failed_rank = 1;
  crash.reason = "rank 1 failed in profile";
  start(crash);
  crash.trace.events.push_back(event_at("fault", 30,
                                        {{"type", "RuntimeError"},
                                         {"message", "Engine core initialization failed"},
                                         {"function", "wait_for_engine"},
                                         {"file", "core_client.py"}},
                                        0));
  crash.trace.events.push_back(event_at("fault", 30.5,
                                        {{"type", "AssertionError"},
                                         {"message", "topk_indices_buffer is None"},
                                         {"function", "forward_mqa"},
                                         {"file", "flashmla.py"},
                                         {"line", 412}},
                                        1));
  crash.trace.events.push_back(event_at("process_end", 31, {{"pid", 1}, {"wall_s", 31.0}}));
  std::string log;
  for (int i = 1; i <= 30; ++i) log += "(Worker_TP1) INFO line " + std::to_string(i) + "\n";
  log += "(Worker_TP1) ERROR AssertionError: topk_indices_buffer is None\n(Worker_TP1) last\n";
  crash.outputs = {{1, "stderr", log.size(), log, "", {}}};
  add_variant(s, one, crash, verdict::Verdict::kPass, {});
  verdict::RunRecord pass = sample_pass();
  pass.trace.events.clear();
  pass.contracts.clear();
  pass.allowed.clear();
  pass.sets.clear();
  start(pass);
  for (const int rank : {0, 1}) {
    pass.trace.events.push_back(
        event_at("phase_end", 30, {{"phase", "profile"}, {"status", "ok"}}, rank));
    for (const char* phase : {"kv", "warmup", "kv"}) {
      pass.trace.events.push_back(event_at("phase_begin", 31, {{"phase", phase}}, rank));
      pass.trace.events.push_back(
          event_at("phase_end", 33, {{"phase", phase}, {"status", "ok"}}, rank));
    }
  }
  pass.trace.events.push_back(event_at("ready", 40, {{"clock", "port"}}));
  pass.trace.events.push_back(event_at("ready", 45, {{"clock", "health"}}));
  pass.trace.events.push_back(event_at("ready", 44, {{"clock", "health"}}, 1));
  pass.trace.events.push_back(event_at("ready", 47, {{"clock", "first_token"}}));
  pass.trace.events.push_back(event_at("phase_begin", 46, {{"phase", "serve"}}));
  pass.trace.events.push_back(event_at("request", 48, {{"id", 1}, {"ok", true}}));
  pass.trace.events.push_back(event_at("request", 49, {{"id", 2}, {"ok", false}}));
  pass.trace.events.push_back(event_at("process_end", 60, {{"pid", 1}, {"wall_s", 60.0}}));
  pass.figures = {{"kv_bytes", 95007340800.0}, {"kv_tokens", 9222468},
                  {"concurrency", 8.7952309},  {"drafts", 40},
                  {"accepted_tokens", 0},      {"ttft_first_ms", 812.5},
                  {"ttft_third_ms", 31},       {"peak_rss_bytes", 1 << 30}};
  add_variant(s, one, pass, verdict::Verdict::kPass, {});
  one.variants.back().requests = 3;
  s.report.scenarios = {one};
  return s;
}

const EvidenceRow& row_named(const EvidenceTable& table, const std::string& name) {
  for (const EvidenceRow& row : table.rows) {
    if (row.name == name) return row;
  }
  ADD_FAILURE() << "no row " << name;
  return table.rows.front();
}

TEST(Evidence, IsWhatTheRunsShow) {
  const Sample s = server_sample();
  const EvidenceTable table = evidence_of(s.report.scenarios[0]);
  EXPECT_EQ(row_named(table, "outcome").cells[0].text, "crashed in profile");
  EXPECT_EQ(row_named(table, "failing_phase").cells[0].text, "profile");
  // Of the worker that failed first, not of the front end that repeats it.
  EXPECT_EQ(row_named(table, "failing_frame").cells[0].text, "forward_mqa (flashmla.py:412)");
  EXPECT_EQ(row_named(table, "error").cells[0].text, "AssertionError: topk_indices_buffer is None");
  EXPECT_EQ(row_named(table, "failing_worker").cells[0].text, "rank 1, exit code 1");
  EXPECT_EQ(row_named(table, "failing_frame").cells[1].text, "–");
  // From the spawn, which the end and the time lived give.
  EXPECT_DOUBLE_EQ(*row_named(table, "time_to_process_s").cells[0].value, 3);
  EXPECT_DOUBLE_EQ(*row_named(table, "time_to_health_s").cells[1].value, 45);
  EXPECT_DOUBLE_EQ(*row_named(table, "time_to_first_token_s").cells[1].value, 47);
  // The slowest rank, and every time a phase came back.
  EXPECT_DOUBLE_EQ(*row_named(table, "load_s").cells[1].value, 21);
  EXPECT_DOUBLE_EQ(*row_named(table, "kv_s").cells[1].value, 4);
  EXPECT_EQ(row_named(table, "requests_ok").cells[1].text, "1 of 3");
  EXPECT_EQ(row_named(table, "accepted_tokens").cells[1].text, "0") << "seen, and zero";
  EXPECT_EQ(row_named(table, "ttft_first_ms").cells[1].text, "812 ms");
}

TEST(Evidence, WhatWasNotSeenSaysWhy) {
  const Sample s = server_sample();
  const EvidenceTable table = evidence_of(s.report.scenarios[0]);
  for (const EvidenceRow& row : table.rows) {
    for (const EvidenceCell& cell : row.cells) {
      EXPECT_NE(cell.text.empty(), cell.why.empty()) << row.name;
      EXPECT_TRUE(cell.observed() || !cell.value.has_value()) << row.name;
    }
  }
  EXPECT_EQ(row_named(table, "kv_bytes").cells[0].why, "it ended in profile");
  EXPECT_EQ(row_named(table, "draft_tokens").cells[1].why,
            "nothing that was watched tells (counter)");
  EXPECT_EQ(row_named(table, "time_to_steady_s").cells[1].why, "nobody said");
  const std::vector<Unseen> all = unseen(table);
  EXPECT_THAT(all.size(), testing::Ge(3u));
  for (const Unseen& one : all) EXPECT_FALSE(one.why.empty());
}

TEST(Evidence, TheLogAroundTheFault) {
  const Sample s = server_sample();
  const EvidenceTable table = evidence_of(s.report.scenarios[0]);
  ASSERT_EQ(table.excerpts.size(), 1u);
  const LogExcerpt& excerpt = table.excerpts[0];
  EXPECT_EQ(excerpt.lines.size(), kExcerptLines);
  ASSERT_TRUE(excerpt.fault);
  EXPECT_THAT(excerpt.lines[*excerpt.fault], HasSubstr("topk_indices_buffer is None"));
  EXPECT_THAT(excerpt.source, HasSubstr("rank 1 stderr"));
  Sample wide = server_sample();
  wide.runs[0].outputs[0].head = std::string(1 << 20, 'x') + "topk_indices_buffer is None";
  const LogExcerpt cut = evidence_of(wide.report.scenarios[0]).excerpts[0];
  EXPECT_LE(cut.lines[0].size(), kExcerptColumns + 8);
  wide.runs[0].outputs.clear();
  EXPECT_TRUE(evidence_of(wide.report.scenarios[0]).excerpts.empty());
}

TEST(Evidence, OfRepeatsTheMedianAndTheWorstCount) {
  Sample s = server_sample();
  ScenarioReport& one = s.report.scenarios[0];
  verdict::RunRecord more = s.runs[1];
  more.figures["kv_bytes"] = 5;
  more.trace.events.erase(std::remove_if(more.trace.events.begin(), more.trace.events.end(),
                                         [](const trace::Event& e) { return e.ev == "request"; }),
                          more.trace.events.end());
  s.runs.push_back(more);
  s.runs.push_back(s.runs[1]);
  one.variants[1].runs = {&s.runs[1], &s.runs[2], &s.runs[3]};
  const EvidenceTable table = evidence_of(one);
  EXPECT_EQ(row_named(table, "requests_ok").cells[1].text, "0 of 3 (least of 3)");
  EXPECT_THAT(row_named(table, "kv_bytes").cells[1].text, HasSubstr("(median of 3)"));
  EXPECT_EQ(*row_named(table, "kv_bytes").cells[1].value, 95007340800.0);
}

TEST(Evidence, GoldenInEveryFormat) {
  const Sample s = server_sample();
  expect_golden("evidence.txt", ab_report(s.report, {false, Charset::kUtf8, 100}, Detail::kNormal));
  expect_golden("evidence.xml", junit_text(s.report));
  expect_golden("evidence.md", markdown_report(s.report));
  expect_golden("evidence.buildkite.md", buildkite_annotation(s.report));
  SchemaCheck check(nlohmann::json::parse(slurp(golden_path("../report.schema.json"))));
  const nlohmann::json report = nlohmann::json::parse(json_text(s.report));
  EXPECT_THAT(check.problems(report), testing::IsEmpty());
  EXPECT_EQ(report["scenarios"][0]["variants"][1]["runs"][0]["evidence"]["clocks_s"]["health"], 45);
}

// Lines that a reader sees before anything is unfolded.
std::size_t open_lines(const std::string& text) {
  std::istringstream in(text);
  std::size_t lines = 0;
  int depth = 0;
  for (std::string line; std::getline(in, line);) {
    if (line.find("<details>") != line.npos) ++depth;
    if (depth == 0 || line.find("<summary>") != line.npos) ++lines;
    if (line.find("</details>") != line.npos) --depth;
  }
  return lines;
}

TEST(Evidence, FitsAScreen) {
  Sample s = server_sample();
  EXPECT_LE(open_lines(markdown_report(s.report)), kScreenLines);
  // The fullest: every figure, findings, checks and reasons without end.
  ScenarioReport& one = s.report.scenarios[0];
  for (verdict::RunRecord& run : s.runs) {
    for (const trace::FigureRule& rule : trace::figures()) run.figures[std::string(rule.name)] = 7;
    for (int i = 0; i < 50; ++i) {
      contract::Result broken = sample_kept("contract-" + std::to_string(i));
      broken.state = contract::State::kBroken;
      broken.findings = {sample_finding(broken.contract, "k", "message " + std::to_string(i))};
      run.contracts.push_back(broken);
    }
  }
  for (int i = 0; i < 50; ++i)
    one.checks.push_back({"gate x" + std::to_string(i), "1", "2", verdict::Verdict::kFail, ""});
  one.reason = std::string(5000, 'r');
  EXPECT_LE(open_lines(markdown_report(s.report)), kScreenLines);
}

TEST(Evidence, HostileTextStaysText) {
  Sample s = hostile_report();
  s.report.verb = "ab";
  s.report.scenarios.resize(1);
  for (verdict::RunRecord& run : s.runs) {
    trace::Event fault = event_at("fault", 1,
                                  {{"type", hostile_text()},
                                   {"message", hostile_text()},
                                   {"function", hostile_text()},
                                   {"file", hostile_text()}});
    run.trace.events.push_back(fault);
    run.outputs = {{0, hostile_text(), 3, hostile_text(), hostile_text(), {hostile_text()}}};
  }
  for (const std::string& text :
       {markdown_report(s.report), buildkite_annotation(s.report), junit_text(s.report),
        json_text(s.report), ab_report(s.report, {}, Detail::kNormal)}) {
    EXPECT_THAT(text, Not(HasSubstr("hunter2")));
    EXPECT_THAT(text, Not(HasSubstr("\x1b")));
    EXPECT_THAT(text, Not(HasSubstr("\n::error::")));
  }
  for (const std::string& text : {markdown_report(s.report), buildkite_annotation(s.report)})
    EXPECT_LE(open_lines(text), kScreenLines + 2);
}

TEST(Buildkite, StyleFollowsTheVerdict) {
  Sample s = server_sample();
  const auto style = [&](verdict::Verdict verdict, bool soft = false) {
    s.report.verdict = verdict;
    s.report.soft.clear();
    if (soft) s.report.soft = {verdict};
    return std::string(buildkite_style(s.report));
  };
  using verdict::Verdict;
  EXPECT_EQ(style(Verdict::kPass), "success");
  EXPECT_EQ(style(Verdict::kFail), "error");
  EXPECT_EQ(style(Verdict::kFail, true), "warning");
  EXPECT_EQ(style(Verdict::kInfra), "error");
  EXPECT_EQ(style(Verdict::kInconclusive), "warning");
  EXPECT_EQ(style(Verdict::kSkip), "info");
  EXPECT_EQ(buildkite_context(s.report), "warmgate-ab-vllm");
  s.report.scenarios[0].name = "a -->\n<b>\"";
  EXPECT_EQ(buildkite_context(s.report), "warmgate-ab-a------b--");
  EXPECT_THAT(buildkite_annotation(s.report), testing::StartsWith("<!-- buildkite-agent annotate"));
}

}  // namespace
}  // namespace warmgate::reports
