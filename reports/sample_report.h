// Reports for tests: one as they come from the two founding regressions, one whose every field is
// hostile.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <string>

#include "reports/report.h"

namespace warmgate::reports {

/// Owns the records that `report` points at.
struct Sample {
  std::deque<verdict::RunRecord> runs;
  Report report;
};

inline contract::Finding sample_finding(std::string contract, std::string key,
                                        std::string message) {
  contract::Finding f;
  f.contract = std::move(contract);
  f.phase = "warmup";
  f.key = std::move(key);
  f.message = std::move(message);
  f.expected = "as promised";
  f.seen = "otherwise";
  return f;
}

inline contract::Result sample_kept(std::string name) {
  contract::Result result;
  result.contract = std::move(name);
  return result;
}

inline verdict::RunRecord sample_crash() {
  verdict::RunRecord run;
  run.scenario = "dspark-absent-topk-buffer";
  run.scenario_path = "scenarios/seeds/dspark-absent-topk-buffer.yaml";
  run.variant = "A";
  run.identity = std::string(64, 'a');
  run.outcome = verdict::Outcome::kCrashed;
  run.phase = "profile";
  run.kind = "assert";
  run.exit_code = 1;
  run.first_failed_rank = 0;
  run.reason = "rank 0 failed in profile: AssertionError: topk_indices_buffer is not set";
  run.phases_ended = {"bootstrap", "load"};
  trace::Event event;
  event.ev = "requires";
  event.t_ns = 1234567;
  event.rank = 0;
  event.source = "rank0";
  event.line = 57;
  event.body = {{"layer", 43}, {"resource", "topk_indices_buffer"}, {"owned", false}};
  run.trace.events.push_back(event);
  contract::Finding f = sample_finding("owned-resources", "topk_indices_buffer", "unused");
  f.phase = "profile";
  f.layer = 43;
  f.layer_kind = "swaonly";
  f.role = "draft";
  f.detail = {{"owns", {"swa_cache", "attn_sink"}}, {"same_layers", {43, 44, 45}}};
  f.events = {0};
  contract::Result broken;
  broken.contract = "owned-resources";
  broken.state = contract::State::kBroken;
  broken.findings = {f};
  contract::Result unseen;
  unseen.contract = "keys-covered";
  unseen.state = contract::State::kNotObserved;
  unseen.why = "the run ended before serve";
  run.contracts = {sample_kept("protocol"), broken, unseen};
  run.outputs.push_back({0,
                         "stderr",
                         61,
                         "AssertionError: topk_indices_buffer is not set\n",
                         "",
                         {"AssertionError: topk_indices_buffer is not set"}});
  run.workers.push_back({0, 4711, true, 1, 0, false, false, 20 << 20, 0.031, 0.025});
  run.environment = {{"schema", "environment/1.0"}};
  run.fingerprint = verdict::Fingerprint{
      "profile", "assert", "AssertionError", "owned-resources", {{"forward_mqa", "flashmla.cc"}}};
  run.reproduce =
      "warmgate run scenarios/seeds/dspark-absent-topk-buffer.yaml --variant A --no-expect";
  run.figures = {{"weights_bytes", 81604378624.0}};
  run.wall_s = 0.031;
  return run;
}

inline verdict::RunRecord sample_pass() {
  verdict::RunRecord run = sample_crash();
  run.variant = "B";
  run.identity = std::string(64, 'b');
  run.outcome = verdict::Outcome::kPassed;
  run.phase = run.kind = "";
  run.exit_code.reset();
  run.fingerprint.reset();
  run.first_failed_rank = -1;
  run.reason = "all phases ended and no contract broke beyond what allow lists";
  run.phases_ended = {"bootstrap", "load", "profile", "kv", "warmup", "ready", "serve", "shutdown"};
  run.contracts = {sample_kept("protocol"), sample_kept("owned-resources")};
  contract::Result reach = sample_kept("keys-reachable");
  reach.notes = {sample_finding("keys-reachable", "K{A=1}", "K{A=1} is warmed and never launched")};
  run.contracts.push_back(reach);
  for (const char* width : {"1024", "2048"}) {
    run.allowed.push_back({sample_finding("keys-covered",
                                          std::string("CombineTopkSwaIndices{COMPRESS_RATIO=128,"
                                                      "TOP_K=") +
                                              width + "}",
                                          ""),
                           "rev A warms width 8192 only", "vllm-project/vllm#50004", "x.yaml:42"});
  }
  run.outputs.clear();
  run.reproduce = "warmgate run scenarios/seeds/dspark-absent-topk-buffer.yaml --variant B";
  run.figures = {{"kv_tokens", 9222468},           {"concurrency", 8.7952309},
                 {"kv_bytes", 95007340800.0},      {"time_to_ready_s", 0.0284},
                 {"weights_bytes", 81604378624.0}, {"skips", 0}};
  run.sets = {{"keys_warmed", {"K{A=1}", "K{A=2}"}}};
  run.wall_s = 0.044;
  return run;
}

inline void add_variant(Sample& sample, ScenarioReport& scenario, verdict::RunRecord run,
                        verdict::Verdict verdict, std::vector<std::string> behaviours) {
  VariantReport v;
  v.name = v.base_name = run.variant;
  v.identity = run.identity;
  v.behaviours = std::move(behaviours);
  v.modelled = true;
  v.device = "meta";
  v.verdict.verdict = verdict;
  v.verdict.reason = run.reason;
  sample.runs.push_back(std::move(run));
  v.runs = {&sample.runs.back()};
  scenario.variants.push_back(std::move(v));
}

/// Scenario one: A crashed as expected, B passed. Scenario two: a FAIL, an INCONCLUSIVE, an INFRA
/// and a SKIP.
inline Sample sample_report() {
  using verdict::Verdict;
  Sample s;
  s.report.command = "warmgate gate scenarios";
  s.report.verb = "gate";
  s.report.version = "0.1.0";
  s.report.wall_s = 0.42;
  s.report.verdict = Verdict::kFail;
  s.report.exit_code = 1;
  s.report.machine = {{"schema", "environment/1.0"}, {"cpu", "a cpu"}};
  s.report.not_observed = {"sm_90a: no NVRTC on this machine; keys are judged by the host half"};
  ScenarioReport one;
  one.name = "dspark-absent-topk-buffer";
  one.path = "scenarios/seeds/dspark-absent-topk-buffer.yaml";
  one.about = "Draft layers own no top-k index buffer; memory profiling must not ask for one.";
  one.source = {
      {"repo", "vllm-project/vllm"}, {"issue", 50615}, {"fix", 50693}, {"introduced_by", 50298}};
  one.tags = {"seed"};
  one.verdict = Verdict::kPass;
  add_variant(s, one, sample_crash(), Verdict::kPass, {"vllm-rev-a", "vllm-pr50298"});
  one.variants.back().expected = "crashed, in profile, breaking owned-resources";
  one.variants.back().verdict.checks = {{"outcome", "crashed", "crashed", Verdict::kPass, ""}};
  add_variant(s, one, sample_pass(), Verdict::kPass, {"vllm-rev-a", "vllm-pr50693"});
  ScenarioReport two;
  two.name = "others";
  two.path = "scenarios/others.yaml";
  two.verdict = Verdict::kFail;
  two.reason = "1 of 4 variants failed";
  verdict::RunRecord fail = sample_crash();
  fail.variant = "fail";
  add_variant(s, two, fail, Verdict::kFail, {});
  two.variants.back().verdict.checks = {
      {"outcome", "passed", "crashed in profile", Verdict::kFail, ""}};
  verdict::RunRecord doubt = sample_pass();
  doubt.variant = "doubt";
  add_variant(s, two, doubt, Verdict::kInconclusive, {});
  two.variants.back().verdict.checks = {
      {"figure concurrency", "8.80 ± 0.1%", "", Verdict::kInconclusive, "not observed"}};
  verdict::RunRecord infra = sample_pass();
  infra.variant = "infra";
  infra.outcome = verdict::Outcome::kInfra;
  infra.reason = "the engine's program was not found";
  add_variant(s, two, infra, Verdict::kInfra, {});
  verdict::RunRecord skip = sample_pass();
  skip.variant = "skip";
  skip.outcome = verdict::Outcome::kSkipped;
  skip.reason = "needs 1 GPU, there is none";
  skip.figures.clear();
  skip.allowed.clear();
  add_variant(s, two, skip, Verdict::kSkip, {});
  two.checks = {{"allow x.yaml:9", "matches something", "nothing", Verdict::kFail, "remove it"}};
  s.report.scenarios = {one, two};
  return s;
}

/// Every kind of text that has ever broken a log reader, and a secret.
inline const std::string& hostile_text() {
  static const std::string text =
      std::string("::error::pwned\n::set-output name=a::b\r\x1b[31mred\x1b]0;title\x07 ") +
      std::string(1, '\0') + "]]> <!-- & \"'\x80\xff\xc0\xaf \xed\xa0\x80 \xe2\x80\xae" +
      "##[error]x ##vso[task.complete]y hunter2-token \x08\x7f\xc2\x9b" + "2J";
  return text;
}

inline Sample hostile_report() {
  const std::string& bad = hostile_text();
  Sample s = sample_report();
  Report& r = s.report;
  r.secrets = {"hunter2-token"};
  r.command = r.verb = r.version = bad;
  r.machine = {{"a", {{"b", bad}}}, {"hunter2-token", 1}};
  r.not_observed = {bad};
  const auto spoil_finding = [&](contract::Finding& f) {
    f.contract = f.phase = f.layer_kind = f.role = f.key = f.expected = f.seen = f.message = bad;
    f.detail = {{"d", bad}};
  };
  for (verdict::RunRecord& run : s.runs) {
    run.scenario = run.scenario_path = run.variant = run.identity = bad;
    run.reason = run.phase = run.kind = run.reproduce = bad;
    run.phases_ended = {bad};
    for (contract::Result& result : run.contracts) {
      result.contract = result.why = bad;
      result.missing = {bad};
      for (contract::Finding& f : result.findings) spoil_finding(f);
      for (contract::Finding& f : result.notes) spoil_finding(f);
    }
    for (auto& allowed : run.allowed) {
      spoil_finding(allowed.finding);
      allowed.reason = allowed.issue = allowed.where = bad;
    }
    run.outputs = {{0, bad, 3, bad, bad, {bad}}};
    run.sets = {{bad, {bad}}};
    run.figures[bad] = 1.5;
    run.figure_info[bad] = {bad, bad, bad};
    run.environment = {{bad, bad}};
    for (trace::Event& e : run.trace.events) {
      e.ev = e.src = e.source = bad;
      e.body = {{bad, bad}};
    }
    if (run.fingerprint) run.fingerprint->type = bad;
  }
  for (ScenarioReport& scenario : r.scenarios) {
    scenario.name = scenario.path = scenario.about = scenario.reason = bad;
    scenario.source = {{"repo", bad}, {"issue", bad}};
    scenario.tags = {bad};
    scenario.checks.push_back({bad, bad, bad, verdict::Verdict::kFail, bad});
    for (VariantReport& v : scenario.variants) {
      v.name = v.base_name = v.identity = v.device = v.expected = v.verdict.reason = bad;
      v.behaviours = {bad};
      v.verdict.checks.push_back({bad, bad, bad, verdict::Verdict::kFail, bad});
    }
    contract::Result comparison;
    comparison.contract = comparison.why = bad;
    comparison.state = contract::State::kBroken;
    comparison.findings.emplace_back();
    spoil_finding(comparison.findings.back());
    scenario.comparisons.push_back(comparison);
  }
  return s;
}

inline std::filesystem::path golden_path(const std::string& name) {
  const char* root = std::getenv("WARMGATE_SOURCE_DIR");
  return std::filesystem::path(root ? root : ".") / "reports/golden" / name;
}

inline std::string slurp(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Compares with reports/golden/NAME; WARMGATE_UPDATE_GOLDEN=1 writes it instead, for a person to
/// read in the diff.
inline void expect_golden(const std::string& name, const std::string& text) {
  const char* update = std::getenv("WARMGATE_UPDATE_GOLDEN");
  if (update && std::string(update) == "1") std::ofstream(golden_path(name)) << text;
  EXPECT_EQ(slurp(golden_path(name)), text)
      << "differs from " << golden_path(name)
      << "; if that is meant, run with WARMGATE_UPDATE_GOLDEN=1 and read the diff";
}

}  // namespace warmgate::reports
