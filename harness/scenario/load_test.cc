// What a file means: layers and their order, matrix, extends, devices, ranks, --set.
#include <gmock/gmock.h>

#include "harness/scenario/seams.h"
#include "harness/scenario/test_files.h"

namespace warmgate::scenario {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Load = TestFiles;

std::vector<std::string> names(const Scenario& scenario) {
  std::vector<std::string> out;
  for (const Variant& variant : scenario.variants) out.push_back(variant.name);
  return out;
}

TEST_F(Load, DefaultsWhereNothingIsSaid) {
  const Scenario s = load(kSmall);
  ASSERT_THAT(names(s), ElementsAre("default"));
  const Variant& v = s.variants[0];
  ASSERT_EQ(v.ranks.size(), 1u);
  const Resolved& r = v.ranks[0];
  EXPECT_EQ(r.device, "meta");
  EXPECT_EQ(r.limits.max_num_batched_tokens, 8192);
  EXPECT_EQ(r.limits.device_memory_bytes, std::int64_t{80} << 30);
  EXPECT_FALSE(r.limits.kv_pool_bytes);
  EXPECT_FALSE(r.drafter.active());
  EXPECT_EQ(r.drafter.block_size, 0);  // the preset's constants come with the method
  EXPECT_THAT(r.architectures, ElementsAre("sm_90a"));
  EXPECT_EQ(r.seams.at("warmup.chunk_ratios"), "indexer_caches");  // every seam, its first value
  EXPECT_EQ(r.seams.size(), seams().size());
  EXPECT_EQ(v.target.phases.size(), 9u);
  EXPECT_TRUE(v.expect.empty());
  EXPECT_EQ(v.origins.at("limits.max_num_seqs"), "default");
}

// The order of design: preset, base behaviour, base, device, variant's behaviours left to right,
// variant, matrix, --set. One value is set by each in turn, and each time the later one must win.
TEST_F(Load, LaterLayersWin) {
  write("base.yaml", "behaviour: base\norigin: [{repo: a/b}]\nseams: {c128a.width: packed}\n");
  write("one.yaml",
        "behaviour: one\norigin: [{repo: a/b}]\n"
        "seams: {c128a.width: packed, workspace.lock: never}\n");
  write("two.yaml", "behaviour: two\norigin: [{repo: a/b}]\nseams: {c128a.width: full_stride}\n");
  const std::string base = std::string(kSmall) + "behaviour: base.yaml\n";
  const auto width = [&](const std::string& rest, const LoadOptions& options = {}) {
    return load(base + rest, options).variants.back().ranks[0].seams.at("c128a.width");
  };
  EXPECT_EQ(load(kSmall).variants[0].ranks[0].seams.at("c128a.width"), "full_stride");
  EXPECT_EQ(width(""), "packed");
  EXPECT_EQ(width("seams: {c128a.width: full_stride}\n"), "full_stride");
  EXPECT_EQ(width("seams: {c128a.width: full_stride}\nvariants: {A: {behaviour: one.yaml}}\n"),
            "packed");
  EXPECT_EQ(width("variants: {A: {behaviour: [one.yaml, two.yaml]}}\n"), "full_stride");
  EXPECT_EQ(width("variants: {A: {behaviour: [two.yaml, one.yaml]}}\n"), "packed");
  const std::string own =
      "variants: {A: {behaviour: one.yaml, seams: {c128a.width: full_stride}}}\n";
  EXPECT_EQ(width(own), "full_stride");
  EXPECT_EQ(width(own + "matrix: {seams.c128a.width: [packed]}\n"), "packed");
  LoadOptions set;
  set.overlays = {"seams.c128a.width=full_stride"};
  EXPECT_EQ(width(own + "matrix: {seams.c128a.width: [packed]}\n", set), "full_stride");
  const Scenario s = load(base + own);
  EXPECT_THAT(s.variants[0].behaviours, ElementsAre("base.yaml", "one.yaml"));
  EXPECT_EQ(s.variants[0].ranks[0].seams.at("workspace.lock"), "never");
}

TEST_F(Load, PresetIsBelowEverything) {
  const Resolved r = load(
                         "scenario: s\nmodel: {preset: small-flash, vocab_size: 100}\n"
                         "limits: {device_memory_bytes: 1 GiB}\n"
                         "variants: {A: {model: {preset: zero-ratio}}}\n")
                         .variants[0]
                         .ranks[0];
  EXPECT_EQ(r.model.vocab_size, 100);                                  // said by the scenario
  EXPECT_THAT(r.model.compress_ratios, ElementsAre(0, 0, 4, 128, 0));  // the variant's preset
  EXPECT_EQ(r.model.name, "zero-ratio");
  EXPECT_EQ(r.limits.max_model_len, 1048576);  // max_position_embeddings
}

TEST_F(Load, DrafterTakesConstantsOfItsMethodAndBuffersOfBehaviours) {
  const std::string base = std::string(kSmall) +
                           "drafter: {method: dspark, num_speculative_tokens: 7, "
                           "topk_indices_buffer: absent}\n";
  const Scenario s = load(base +
                          "variants: {A: {}, B: {behaviour: vllm-pr46789}, "
                          "C: {drafter: {method: none}}, "
                          "D: {drafter: {method: mtp, num_speculative_tokens: 1}}}\n");
  const Drafter& a = s.variants[0].ranks[0].drafter;
  EXPECT_EQ(a.block_size, 5);
  EXPECT_EQ(a.layers, 3);
  EXPECT_THAT(a.target_layer_ids, ElementsAre(2, 3, 4));
  EXPECT_EQ(a.topk_indices_buffer, "absent");
  EXPECT_EQ(s.variants[1].ranks[0].drafter.topk_indices_buffer, "own");
  EXPECT_FALSE(s.variants[2].ranks[0].drafter.active());
  EXPECT_EQ(s.variants[2].ranks[0].drafter.layers, 0);
  EXPECT_EQ(s.variants[3].ranks[0].drafter.layers, 1);
  EXPECT_EQ(s.variants[3].ranks[0].drafter.block_size, 1);
  // A behaviour that speaks of the drafter's buffer changes nothing where there is no drafter.
  const Scenario none =
      load(std::string(kSmall) + "variants: {A: {}, B: {behaviour: vllm-pr46789}}\n");
  EXPECT_EQ(none.variants[0].identity, none.variants[1].identity);
}

TEST_F(Load, InlineLayers) {
  const Resolved r =
      load(
          "scenario: s\nmodel: {preset: small-flash, layers: [{ratio: 0}, {ratio: 4, "
          "count: 3}, {ratio: 128}]}\nlimits: {device_memory_bytes: 1 GiB}\n")
          .variants[0]
          .ranks[0];
  EXPECT_EQ(r.model.num_hidden_layers, 5);
  EXPECT_THAT(r.model.compress_ratios, ElementsAre(0, 4, 4, 4, 128));
  EXPECT_EQ(effective_ratio(r.model, 0), 1);
}

TEST_F(Load, Workloads) {
  const Scenario s =
      load(std::string(kSmall) +
           "variants:\n"
           "  A: {workload: {output_tokens: 9}}\n"
           "  B: {workload: {groups: [{requests: 2, prompt_tokens: 5, output_tokens: "
           "6, start_step: 3, class: long}]}}\n");
  const auto& a = s.variants[0].ranks[0].workload.groups;
  ASSERT_EQ(a.size(), 1u);
  EXPECT_EQ(a[0].prompt_tokens, 8);
  EXPECT_EQ(a[0].output_tokens, 9);
  EXPECT_EQ(a[0].request_class, "greedy");
  const auto& b = s.variants[1].ranks[0].workload.groups;
  ASSERT_EQ(b.size(), 1u);
  EXPECT_EQ(b[0].count, 2);
  EXPECT_EQ(b[0].start_step, 3);
  EXPECT_EQ(b[0].request_class, "long");
}

TEST_F(Load, MatrixMultipliesVariants) {
  const Scenario s = load(std::string(kSmall) +
                          "variants: {A: {}, B: {seed: 7}}\n"
                          "matrix: {parallel.tp: [1, 2], seams.jit.compiler: [strict, lenient]}\n"
                          "expect: {A: {outcome: passed, figures: {kv_tokens: 5}}, "
                          "\"A[parallel.tp=2,seams.jit.compiler=lenient]\": {outcome: failed}}\n");
  EXPECT_THAT(names(s), ElementsAre("A[parallel.tp=1,seams.jit.compiler=strict]",
                                    "A[parallel.tp=1,seams.jit.compiler=lenient]",
                                    "A[parallel.tp=2,seams.jit.compiler=strict]",
                                    "A[parallel.tp=2,seams.jit.compiler=lenient]",
                                    "B[parallel.tp=1,seams.jit.compiler=strict]",
                                    "B[parallel.tp=1,seams.jit.compiler=lenient]",
                                    "B[parallel.tp=2,seams.jit.compiler=strict]",
                                    "B[parallel.tp=2,seams.jit.compiler=lenient]"));
  EXPECT_EQ(s.variants[2].base_name, "A");
  EXPECT_EQ(s.variants[2].ranks.size(), 2u);
  EXPECT_EQ(*s.variants[2].expect.outcome, "passed");
  EXPECT_EQ(*s.variants[3].expect.outcome, "failed");
  EXPECT_EQ(s.variants[3].expect.figures.count("kv_tokens"), 1u);  // merged, not replaced
  EXPECT_TRUE(s.variants[4].expect.empty());
  EXPECT_THAT(s.variants[3].origins.at("seams.jit.compiler"), HasSubstr("(matrix)"));
  EXPECT_EQ(names(load(std::string(kSmall) + "matrix: {parallel.tp: [1, 2]}\n"))[1],
            "default[parallel.tp=2]");
  EXPECT_THAT(problems(std::string(kSmall) + "matrix: {parallel.tpp: [1]}\n"),
              HasSubstr("s.yaml:5:10: matrix.parallel.tpp: unknown key 'tpp'; did you mean tp?"));
  EXPECT_THAT(problems(std::string(kSmall) + "matrix: {parallel.tp: 2}\n"),
              HasSubstr("expected a list"));
  EXPECT_THAT(problems(std::string(kSmall) + "matrix: {parallel.tp: [1, x]}\n"),
              HasSubstr("s.yaml:5:27: matrix.parallel.tp[1]: expected an integer"));
}

TEST_F(Load, ExtendsWithinTheTree) {
  write("common/base.yaml",
        "about: the base\nmodel: {preset: small-dspark}\n"
        "limits: {max_model_len: 4096, device_memory_bytes: 80 GiB}\n"
        "variants: {A: {seed: 1}, B: {seed: 2}}\nexpect: {A: {outcome: passed}}\n");
  const Scenario s = load(
      "scenario: child\nextends: common/base.yaml\n"
      "limits: {max_model_len: 2048}\nvariants: {B: {seed: 3}, C: {}}\n");
  EXPECT_EQ(s.name, "child");
  EXPECT_EQ(s.about, "the base");
  EXPECT_THAT(names(s), ElementsAre("A", "B", "C"));
  EXPECT_EQ(s.variants[1].ranks[0].seed, 3);
  EXPECT_EQ(s.variants[0].ranks[0].limits.max_model_len, 2048);
  EXPECT_EQ(*s.variants[0].expect.outcome, "passed");
  EXPECT_THAT(s.variants[0].origins.at("seed"), HasSubstr("base.yaml:4"));
}

TEST_F(Load, ExtendsCyclesAreShown) {
  write("b.yaml", "extends: c.yaml\n");
  write("c.yaml", "extends: s.yaml\n");
  EXPECT_THAT(problems(std::string(kSmall) + "extends: b.yaml\n"),
              HasSubstr("extends: a cycle: s.yaml → b.yaml → c.yaml → s.yaml"));
  EXPECT_THAT(problems(std::string(kSmall) + "extends: s.yaml\n"),
              HasSubstr("s.yaml:5:10: extends: a cycle: s.yaml → s.yaml"));
  for (int i = 0; i < 30; ++i) {
    write("n" + std::to_string(i) + ".yaml", "extends: n" + std::to_string(i + 1) + ".yaml\n");
  }
  EXPECT_THAT(problems(std::string(kSmall) + "extends: n0.yaml\n"), HasSubstr("scenarios deep"));
}

TEST_F(Load, NothingOutsideTheTreeIsRead) {
  write("outside.yaml", "about: outside\n");
  const std::string secret = "behaviour: outside\norigin: [{repo: a/b}]\n";
  write("outside_b.yaml", secret);
  const auto inner = [&](const std::string& rest) {
    return problems_of(write("tree/s.yaml", std::string(kSmall) + rest));
  };
  EXPECT_THAT(
      inner("extends: ../outside.yaml\n"),
      HasSubstr("tree/s.yaml:5:10: extends: '../outside.yaml' leads out of the scenario's"));
  EXPECT_THAT(inner("extends: x/../../outside.yaml\n"), HasSubstr("leads out of"));
  EXPECT_THAT(inner("extends: /etc/passwd\n"), HasSubstr("is absolute"));
  EXPECT_THAT(inner("behaviour: ../outside_b.yaml\n"), HasSubstr("leads out of"));
  EXPECT_THAT(inner("variants: {A: {behaviour: [../outside_b.yaml]}}\n"),
              HasSubstr("leads out of"));
  std::filesystem::create_symlink("../outside.yaml", folder_ / "tree/link.yaml");
  EXPECT_THAT(inner("extends: link.yaml\n"), HasSubstr("through a link"));
  std::filesystem::create_directory_symlink("..", folder_ / "tree/up");
  EXPECT_THAT(inner("extends: up/outside.yaml\n"), HasSubstr("through a link"));
  EXPECT_THAT(inner("behaviour: up/outside_b.yaml\n"), HasSubstr("through a link"));
  EXPECT_THAT(inner("extends: none.yaml\n"), HasSubstr("No such file"));
  EXPECT_THAT(inner("extends: up\n"), HasSubstr("through a link"));
  // A folder named scenarios is the tree of everything below it.
  write("scenarios/base.yaml", "seed: 5\n");
  const auto deep =
      write("scenarios/a/b/s.yaml", std::string(kSmall) + "extends: ../../base.yaml\n");
  EXPECT_EQ(problems_of(deep), "");
  const auto out =
      write("scenarios/a/o.yaml", std::string(kSmall) + "extends: ../../outside.yaml\n");
  EXPECT_THAT(problems_of(out), HasSubstr("leads out of"));
}

TEST_F(Load, DevicesOverlayOnlyWhenChosen) {
  const std::string text = std::string(kSmall) +
                           "parallel: {tp: 2}\n"
                           "devices: {cuda: {parallel: {tp: 1}, limits: {max_num_seqs: 16}, "
                           "expect: {B: {figures: {concurrency: 2.06 ± 0.5%}}}}}\n"
                           "variants: {A: {limits: {max_num_seqs: 4}}, B: {}}\n"
                           "expect: {B: {outcome: passed, figures: {concurrency: 3}}}\n";
  const Scenario meta = load(text);
  EXPECT_EQ(meta.variants[1].ranks.size(), 2u);
  EXPECT_EQ(meta.variants[1].expect.figures.at("concurrency").low, 3);
  LoadOptions options;
  options.device = "cuda";
  const Scenario cuda = load(text, options);
  EXPECT_EQ(cuda.variants[0].ranks.size(), 1u);
  EXPECT_EQ(cuda.variants[0].ranks[0].device, "cuda");
  EXPECT_EQ(cuda.variants[0].ranks[0].limits.max_num_seqs, 4);  // the variant is above the device
  EXPECT_EQ(cuda.variants[1].ranks[0].limits.max_num_seqs, 16);
  EXPECT_EQ(*cuda.variants[1].expect.outcome, "passed");
  EXPECT_DOUBLE_EQ(cuda.variants[1].expect.figures.at("concurrency").low, 2.06);
  EXPECT_NE(cuda.variants[0].identity, meta.variants[0].identity);
  // The same through the file.
  const Scenario file = load(text + "target: {native: {device: cuda}}\n");
  EXPECT_EQ(file.variants[1].identity, cuda.variants[1].identity);
  options.device = "cudda";
  EXPECT_THAT(problems(text, options), HasSubstr("--device: no device 'cudda'"));
}

TEST_F(Load, RanksMayDiffer) {
  const Scenario s = load(std::string(kSmall) +
                          "parallel: {tp: 2}\nranks: {1: {limits: {device_memory_bytes: 40 GiB}}}\n"
                          "variants: {A: {limits: {device_memory_bytes: 60 GiB}}}\n");
  const auto& ranks = s.variants[0].ranks;
  ASSERT_EQ(ranks.size(), 2u);
  EXPECT_EQ(ranks[0].limits.device_memory_bytes, std::int64_t{60} << 30);
  EXPECT_EQ(ranks[1].limits.device_memory_bytes, std::int64_t{40} << 30);
  EXPECT_THAT(problems(std::string(kSmall) +
                       "parallel: {tp: 2}\nranks: {1: {limits: {kv_pool_bytes: 90 GiB}}}\n"),
              HasSubstr("s.yaml:6:37: ranks.1.limits.kv_pool_bytes"));
  EXPECT_THAT(problems(std::string(kSmall) + "ranks: {0: {parallel: {tp: 2}}}\n"),
              HasSubstr("ranks.0.parallel: unknown key"));
}

TEST_F(Load, SetIsLastAndChecked) {
  LoadOptions options;
  options.overlays = {"limits.max_model_len=2048", "variants.B.seed=9",
                      "model.layers=[{ratio: 4, count: 2}]", "behaviour=vllm-pr50298"};
  const Scenario s =
      load(std::string(kSmall) + "variants: {A: {seed: 1}, B: {seed: 2}}\n", options);
  EXPECT_EQ(s.variants[0].ranks[0].limits.max_model_len, 2048);
  EXPECT_EQ(s.variants[0].ranks[0].seed, 1);
  EXPECT_EQ(s.variants[1].ranks[0].seed, 9);
  EXPECT_EQ(s.variants[0].ranks[0].model.num_hidden_layers, 2);
  EXPECT_EQ(s.variants[0].ranks[0].seams.at("profile.topk_bound"), "buffer_required");
  EXPECT_EQ(s.variants[0].origins.at("limits.max_model_len"), "--set limits.max_model_len=2048");
  const auto set = [&](const std::string& text) {
    LoadOptions one;
    one.overlays = {text};
    return problems(kSmall, one);
  };
  EXPECT_THAT(set("limits.max_modle_len=5"), HasSubstr("did you mean max_model_len?"));
  EXPECT_THAT(set("limits.max_model_len=yes"), HasSubstr("expected an integer, got 'yes'"));
  EXPECT_THAT(set("limits.max_model_len"), HasSubstr("expected KEY.PATH=VALUE"));
  EXPECT_THAT(set("=5"), HasSubstr("expected KEY.PATH=VALUE"));
  EXPECT_THAT(set("seed.x=5"), HasSubstr("leads nowhere"));
  EXPECT_THAT(set("seams.profile.topk=5"), HasSubstr("unknown key"));
  EXPECT_THAT(set("variants.Z.seed=5"), HasSubstr("no variant 'Z'"));
  EXPECT_THAT(set("seed="), HasSubstr("nothing after '='"));
  EXPECT_THAT(set("seed=[[[["), HasSubstr("--set seed=[[[["));
  EXPECT_THAT(set("parallel.tp=8"), HasSubstr("tp 8 is above o_groups 4"));
}

TEST_F(Load, CommandTargets) {
  const Scenario s = load(
      "scenario: s\n"
      "target:\n"
      "  command:\n"
      "    argv: [python3, worker.py, --fast]\n"
      "    env: {MODE: 5, EMPTY: \"\"}\n"
      "    cwd: sub\n"
      "    phases: [load, serve]\n"
      "    deadlines: {load: 500 ms, default: 2 min}\n"
      "    silence: 3 s\n"
      "    memory: 1 GiB\n"
      "variants: {A: {}, B: {target: {native: {}}, model: {preset: small-flash}, "
      "limits: {device_memory_bytes: 1 GiB}}, C: {target: {command: {silence: 5}}}}\n");
  const Target& t = s.variants[0].target;
  EXPECT_EQ(t.kind, Target::Kind::kCommand);
  EXPECT_THAT(t.argv, ElementsAre("python3", "worker.py", "--fast"));
  EXPECT_EQ(t.env.at("MODE"), "5");
  EXPECT_EQ(t.env.at("EMPTY"), "");
  EXPECT_EQ(t.cwd, "sub");
  EXPECT_THAT(t.phases, ElementsAre("load", "serve"));
  EXPECT_DOUBLE_EQ(t.deadline_s.at("load"), 0.5);
  EXPECT_DOUBLE_EQ(t.deadline_s.at(""), 120);
  EXPECT_DOUBLE_EQ(*t.silence_s, 3);
  EXPECT_EQ(*t.memory_bytes, 1 << 30);
  EXPECT_EQ(s.variants[0].ranks.size(), 1u);
  EXPECT_EQ(s.variants[1].target.kind, Target::Kind::kNative);
  EXPECT_TRUE(s.variants[1].target.env.empty());
  EXPECT_DOUBLE_EQ(*s.variants[2].target.silence_s, 5);
  EXPECT_EQ(s.variants[2].target.argv.size(), 3u);
}

TEST_F(Load, WhatIsDemanded) {
  const Scenario s =
      load(std::string(kSmall) +
               "source: {repo: a/b, issue: 5, fix: \"c\"}\n"
               "tags: [x, y]\ntouches: [\"src/**\"]\nneeds: {gpus: 2, gpu_gib: 79.5, arch: sm_90a, "
               "files: ../engine}\n"
               "expect: {outcome: failed, phase: warmup, contract: [keys-valid, starts], "
               "figures: {kv_bytes: \"> 1 GiB\"}}\n"
               "gate: {time_to_ready_s: {max: 2 min, regress: {by: 10 %, and: 500 ms}}, "
               "keys-reachable: {}, compiles_after_ready: {new: 0}, my_metric: {min: 5, direction: "
               "higher}}\n"
               "allow: [{contract: my-contract, match: \"a{b,*\", reason: r, issue: 7, until: "
               "2026-12-31, "
               "variants: default}]\n",
           [] {
             LoadOptions options;
             options.extra_figures = {{"my_metric", "apples"}};
             options.extra_contracts = {"my-contract"};
             return options;
           }());
  const Expectation& e = s.variants[0].expect;
  EXPECT_EQ(*e.outcome, "failed");
  EXPECT_EQ(*e.phase, "warmup");
  EXPECT_THAT(e.contracts, ElementsAre("keys-valid", "starts"));
  EXPECT_TRUE(e.figures.at("kv_bytes").holds(1073741825));
  EXPECT_FALSE(e.figures.at("kv_bytes").holds(1073741824));
  EXPECT_EQ(*s.gate.at("time_to_ready_s").max, 120);
  EXPECT_EQ(*s.gate.at("time_to_ready_s").regress->by_percent, 10);
  EXPECT_DOUBLE_EQ(*s.gate.at("time_to_ready_s").regress->and_absolute, 0.5);
  EXPECT_EQ(*s.gate.at("compiles_after_ready").new_count, 0);
  EXPECT_EQ(s.gate.count("keys-reachable"), 1u);
  EXPECT_EQ(*s.gate.at("my_metric").direction, "higher");
  ASSERT_EQ(s.allow.size(), 1u);
  EXPECT_EQ(s.allow[0].match, "a{b,*");
  EXPECT_EQ(s.allow[0].issue, "7");
  EXPECT_THAT(s.allow[0].variants, ElementsAre("default"));
  EXPECT_THAT(s.allow[0].where, HasSubstr("s.yaml:11"));
  EXPECT_EQ(*s.needs.gpus, 2);
  EXPECT_EQ(*s.needs.gpu_gib, 79.5);
  EXPECT_THAT(s.needs.arch, ElementsAre("sm_90a"));
  EXPECT_THAT(s.needs.files, ElementsAre((folder_.parent_path() / "engine").string()));
  EXPECT_EQ(s.source["issue"], 5);
  EXPECT_EQ(s.source["fix"], "c");
  EXPECT_THAT(s.tags, ElementsAre("x", "y"));
  EXPECT_EQ(s.accepted_path().filename(), "s.accepted.json");
}

}  // namespace
}  // namespace warmgate::scenario
