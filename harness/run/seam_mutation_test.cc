// Every seam is proved by a mutation: in a scenario that passes, the seam alone is set to a wrong
// value, and the gate fails with the contract named here. A seam without a row fails the test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "harness/run/testing.h"
#include "harness/scenario/seams.h"

namespace warmgate::run::testing {
namespace {

using verdict::Verdict;

/// With `seam` at its right value (and `setting` as given) the variant of the scenario is PASS;
/// with `wrong` it is FAIL, and `contract` is broken, or noted where only a gate makes it count.
struct Row {
  std::string seam, wrong;
  std::string scenario, variant;  // under scenarios/gate, or the text of one of our own
  std::string contract;
  bool expect = false;                    // hold the variant to its `expect`
  std::vector<std::string> setting = {};  // other seams that the scenario needs
  bool nvrtc = false;                     // the host half keeps nothing in a cache
};

void PrintTo(const Row& row, std::ostream* out) { *out << row.seam << " " << row.wrong; }

// C128A layers alone at long context: nobody else's reservation hides a missing one. Short warmup
// steps, so that nothing but the reservation makes the workspace large; what those leave out is not
// the matter here.
constexpr const char* kOnlyC128a =
    "scenario: only-c128a\n"
    "about: C128A layers alone reserve what they need.\n"
    "model: {preset: small-flash, layers: [{ratio: 128, count: 3}]}\n"
    "limits: {max_model_len: 1048576, max_num_batched_tokens: 2048, max_num_seqs: 64, "
    "device_memory_bytes: 80 GiB}\n"
    "workload: {requests: 2, prompt_tokens: 5000, output_tokens: 4}\n"
    "seams: {warmup.prefill_reach: short_steps}\n"
    "allow:\n"
    "  - {contract: warmup-complete, match: '*', reason: short steps on purpose}\n"
    "  - {contract: signatures-match, match: '*', reason: short steps on purpose}\n";

std::vector<Row> rows() {
  const std::string c128a = "c128a-reserved-too-small.yaml",
                    zero = "warmup-key-divides-by-zero.yaml", late = "late-keys.yaml";
  return {
      {"profile.topk_bound", "buffer_required", "profile-asks-for-a-buffer.yaml", "right",
       "owned-resources"},
      {"prefill.topk_bound", "buffer_required", "prefill-asks-for-a-buffer.yaml", "right",
       "owned-resources"},
      {"profile.draft_batch", "unclamped", "draft-batch-over-its-buffers.yaml", "right", "starts"},
      {"workspace.reservation",
       "topk_buffer_width",
       kOnlyC128a,
       "default",
       "workspace-fits",
       false,
       {"seams.workspace.lock=never"}},
      {"workspace.reservation",
       "none",
       kOnlyC128a,
       "default",
       "workspace-fits",
       false,
       {"seams.workspace.lock=never"}},
      // Under-reserved, a locked workspace ends the run; unlocked it grows under whoever holds it.
      {"workspace.lock", "never", c128a, "locked", "workspace-fits", true},
      // A broken key must end start-up, not vanish in a handler.
      {"warmup.on_error", "swallow", zero, "raises", "warmup-complete", true},
      {"warmup.chunk_ratios", "config_raw", zero, "right", "keys-valid"},
      {"warmup.chunk_ratios", "config_clamped", "defaults-keep-every-contract.yaml", "plain",
       "keys-reachable"},
      {"warmup.chunk_starts",
       "zero_and_one",
       late,
       "right",
       "keys-covered",
       false,
       {"seams.warmup.prefill_reach=covering"}},
      {"warmup.combine_rows", "fixed", late, "rows", "keys-covered"},
      {"warmup.combine_alignments", "fixed", late, "alignments", "keys-covered"},
      {"warmup.prefill_reach", "short_steps", "warmup-stops-short.yaml", "right",
       "warmup-complete"},
      // With the fixed rows a full stride at 1M tokens is warmed; a packed one is not.
      {"c128a.width",
       "packed",
       late,
       "right",
       "keys-covered",
       false,
       {"seams.warmup.combine_rows=fixed"}},
      {"jit.compiler", "lenient", zero, "raises", "keys-valid", true},
      {"jit.cache",
       "unlocked",
       "kernel-cache-without-locks.yaml",
       "locked",
       "cache-sound",
       false,
       {},
       true},
      {"jit.cache",
       "per_start",
       "kernel-cache-without-locks.yaml",
       "locked",
       "cache-sound",
       false,
       {},
       true},
      {"profile.indexer_logits", "absent", "profile-without-the-logits.yaml", "B", "memory-covers"},
      {"profile.tokens", "all_batched", "profile-more-than-can-be-served.yaml", "B",
       "memory-covers"},
      {"kv.sizing", "profile_only", "kv-pool-takes-everything.yaml", "B", "memory-covers"},
      {"warmup.row_classes", "round_counts", "counts-of-another-class.yaml", "B",
       "signatures-match"},
      {"warmup.autotune_batch", "uniform_uncapped", "autotune-over-the-request-limit.yaml", "B",
       "dummy-legal"},
      {"warmup.scratch_blocks", "kept", "warmup-keeps-its-requests.yaml", "B",
       "nothing-left-behind"},
      // These need contents: their scenarios run on a device that executes.
      {"warmup.dummy_slots", "null_block", "dummy-slots-in-the-null-block.yaml", "B",
       "nothing-left-behind"},
      {"warmup.dummy_inputs", "as_found", "dummy-inputs-as-found.yaml", "B", "dummy-legal"},
      {"capture.c128_branch", "recorded", "c128-entries-never-written.yaml", "B", "numerics"},
      {"attention.topk_length", "ignored", "combined-tails-are-read.yaml", "B", "numerics"},
      {"attention.window_padding", "counted", "window-padding-counted.yaml", "B", "numerics"},
      {"rope.window_layers", "plain", "rope-of-window-layers.yaml", "yarn", "numerics"},
  };
}

class SeamMutation : public Product, public ::testing::WithParamInterface<Row> {
 protected:
  GateResult with(const Row& row, const std::string& value) {
    options_.variants = {row.variant};
    options_.expect = row.expect;
    options_.jit = row.nvrtc ? jit::Backend::kAuto : jit::Backend::kHost;
    options_.load.overlays = row.setting;
    options_.load.overlays.push_back("seams." + row.seam + "=" + value);
    const bool own = row.scenario.find('\n') != std::string::npos;
    return run(
        {own ? put("own.yaml", row.scenario) : source_dir() / "scenarios/gate" / row.scenario});
  }
};

bool shows(const GateResult& result, const std::string& contract) {
  for (const auto& variant : result.scenarios.at(0).variants) {
    const contract::Result* found = verdict::find_result(variant.runs.at(0), contract);
    if (found == nullptr) continue;
    // A warmed key that nobody reaches is a note, which this scenario's gate makes count.
    const bool noted = contract == "keys-reachable" && !found->notes.empty();
    if (!found->findings.empty() || noted) return true;
  }
  return false;
}

TEST_P(SeamMutation, TheRightValuePassesAndTheWrongOneFails) {
  const Row& row = GetParam();
  if (row.nvrtc && !jit::nvrtc().available) GTEST_SKIP() << jit::nvrtc().why_not;
  const scenario::SeamRule* seam = scenario::find_seam(row.seam);
  ASSERT_NE(seam, nullptr);
  const GateResult right = with(row, std::string(seam->values.front()));
  EXPECT_EQ(right.verdict, Verdict::kPass) << right.scenarios[0].reason << "\n"
                                           << story(right.scenarios[0].variants.at(0).runs.at(0));
  const GateResult wrong = with(row, row.wrong);
  EXPECT_EQ(wrong.verdict, Verdict::kFail) << wrong.scenarios[0].reason;
  EXPECT_TRUE(shows(wrong, row.contract)) << story(wrong.scenarios[0].variants.at(0).runs.at(0));
  if (!row.expect) {
    EXPECT_FALSE(shows(right, row.contract)) << "it is shown without the mutation too";
  }
}

std::string row_name(const ::testing::TestParamInfo<Row>& info) {
  std::string out = info.param.seam + "_" + info.param.wrong;
  std::replace_if(
      out.begin(), out.end(), [](char c) { return c == '.' || c == '-'; }, '_');
  return out;
}

INSTANTIATE_TEST_SUITE_P(All, SeamMutation, ::testing::ValuesIn(rows()), row_name);

TEST(SeamTable, HasARowForEveryWrongValueOfEverySeam) {
  const std::vector<Row> all = rows();
  // Graphs exist on GPUs alone: scenarios/nightly shows these, and which graphs there are is a
  // choice and no fault.
  const std::set<std::string_view> on_gpus = {"capture.graphs", "capture.indexer_branch"};
  for (const scenario::SeamRule& seam : scenario::seams()) {
    if (on_gpus.count(seam.name) > 0) continue;
    for (std::size_t i = 1; i < seam.values.size(); ++i) {
      const auto row = std::find_if(all.begin(), all.end(), [&](const Row& r) {
        return r.seam == seam.name && r.wrong == seam.values[i];
      });
      EXPECT_NE(row, all.end()) << seam.name << " = " << seam.values[i]
                                << ": which scenario shows that it is wrong, by which contract?";
    }
  }
}

}  // namespace
}  // namespace warmgate::run::testing
