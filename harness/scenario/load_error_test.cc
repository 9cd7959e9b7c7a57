// One wrong file per kind of error: place, key path, what is allowed, nearest name.
#include <gmock/gmock.h>

#include "harness/scenario/test_files.h"

namespace warmgate::scenario {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

using LoadError = TestFiles;

TEST_F(LoadError, TheSmallScenarioLoads) { EXPECT_EQ(problems(kSmall), ""); }

TEST_F(LoadError, UnknownKeysWithTheNearestName) {
  EXPECT_EQ(problems(std::string(kSmall) + "limit: {}\n"),
            "s.yaml:5:1: limit: unknown key; did you mean limits?");
  EXPECT_EQ(problems("scenario: s\nmodel: {preset: small-flash, hiden_size: 5}\n"
                     "limits: {device_memory_bytes: 1 GiB, max_modle_len: 5}\n"),
            "s.yaml:2:30: model.hiden_size: unknown key; did you mean hidden_size?\n"
            "s.yaml:3:38: limits.max_modle_len: unknown key; did you mean max_model_len?");
  EXPECT_THAT(problems(std::string(kSmall) + "zzz: 1\n"),
              HasSubstr("s.yaml:5:1: zzz: unknown key; allowed here: scenario, about,"));
}

TEST_F(LoadError, AllProblemsOfAFileInOneGo) {
  const std::string text = problems(
      "scenario: s\n"
      "model: {preset: small-flash}\n"
      "limits: {max_model_len: yes, max_num_seqs: 010, device_memory_bytes: 1e9}\n"
      "parallel: {tp: 8}\n"
      "seams: {jit.compiler: strikt}\n"
      "expect: {outcome: pass, figures: {kv_token: 5}}\n");
  EXPECT_EQ(
      text,
      "s.yaml:3:25: limits.max_model_len: expected an integer, got 'yes'\n"
      "s.yaml:3:44: limits.max_num_seqs: '010' has a leading zero, which YAML 1.1 takes for "
      "octal; integers are decimal, drop the zero\n"
      "s.yaml:3:70: limits.device_memory_bytes: expected an integer, got '1e9'; write 1000000000\n"
      "s.yaml:4:16: parallel.tp: tp 8 is above o_groups 4; a rank would have no output group\n"
      "s.yaml:5:23: seams.jit.compiler: expected one of strict, lenient, got 'strikt'; did "
      "you mean strict?\n"
      "s.yaml:6:19: expect.outcome: expected one of passed, failed, crashed, hung, "
      "incomplete, got 'pass'; did you mean passed?\n"
      "s.yaml:6:35: expect.figures.kv_token: 'kv_token' is no figure; did you mean "
      "kv_tokens?");
}

TEST_F(LoadError, WrongTypes) {
  EXPECT_THAT(problems("scenario: s\nmodel: 5\n"),
              HasSubstr("s.yaml:2:8: model: expected a map with keys preset, name,"));
  EXPECT_THAT(problems(std::string(kSmall) + "tags: a\n"),
              HasSubstr("s.yaml:5:7: tags: expected a list, got a single value"));
  EXPECT_THAT(problems(std::string(kSmall) + "seed: [1]\n"),
              HasSubstr("s.yaml:5:7: seed: expected a single value, got a list"));
  EXPECT_THAT(problems(std::string(kSmall) + "seed: \"5\"\n"), HasSubstr("drop the quotes"));
  EXPECT_THAT(problems(std::string(kSmall) + "probe_keys: yes\n"),
              HasSubstr("s.yaml:5:13: probe_keys: expected true or false, got 'yes'"));
  EXPECT_THAT(problems(std::string(kSmall) + "checks: {numerics: some, rope_reference: yarm}\n"),
              AllOf(HasSubstr("s.yaml:5:20: checks.numerics: expected one of off, sampled, all"),
                    HasSubstr("checks.rope_reference: expected one of yarn, plain, got 'yarm'")));
  EXPECT_THAT(problems(std::string(kSmall) + "checks: {rows: 3}\n"),
              HasSubstr("s.yaml:5:10: checks.rows: "));
  EXPECT_THAT(problems(std::string(kSmall) + "seed:\n"), HasSubstr("s.yaml:5:1: seed: nothing"));
  EXPECT_THAT(problems("- a\n"), HasSubstr("s.yaml:1:1: expected a map"));
  EXPECT_THAT(problems("just words\n"), HasSubstr("s.yaml:1:1: expected a map"));
  EXPECT_THAT(problems("about: a scenario without name\n"), HasSubstr("scenario: missing"));
}

TEST_F(LoadError, WrongUnitsAndRanges) {
  const auto limit = [&](const std::string& text) {
    return problems("scenario: s\nmodel: {preset: small-flash}\nlimits: {" + text + "}\n");
  };
  EXPECT_THAT(limit("device_memory_bytes: 5 s"),
              HasSubstr("s.yaml:3:31: limits.device_memory_bytes: unit 's' does not fit"));
  EXPECT_THAT(limit("device_memory_bytes: 80 Gib"), HasSubstr("did you mean GiB?"));
  EXPECT_THAT(limit("device_memory_bytes: -5"), HasSubstr("'-5' is too small; at least 1"));
  EXPECT_THAT(limit("max_num_batched_tokens: 0"), HasSubstr("too small; at least 1"));
  EXPECT_THAT(limit("max_num_seqs: 0"), HasSubstr("too small; at least 1"));
  EXPECT_THAT(limit("max_num_seqs: -1"), HasSubstr("too small; at least 1"));
  EXPECT_THAT(limit("max_model_len: 99999999999999999999"), HasSubstr("largest integer"));
  EXPECT_THAT(limit("max_model_len: 9999999999"), HasSubstr("too large; at most 1073741824"));
  EXPECT_THAT(limit("gpu_memory_utilization: .nan"), HasSubstr("expected a number"));
  EXPECT_THAT(limit("gpu_memory_utilization: 1.5"), HasSubstr("too large; at most 1"));
  EXPECT_THAT(limit("gpu_memory_utilization: 0"), HasSubstr("too small"));
  EXPECT_THAT(problems(std::string(kSmall) + "gate: {kv_bytes: {max: 5 s}}\n"),
              HasSubstr("s.yaml:5:24: gate.kv_bytes.max: unit 's' does not fit"));
  EXPECT_THAT(problems(std::string(kSmall) + "gate: {kv_bytes: {regress: {by: 10}}}\n"),
              HasSubstr("s.yaml:5:33: gate.kv_bytes.regress.by: expected a per cent such as 10 %"));
  EXPECT_THAT(problems(std::string(kSmall) + "target: {native: {deadlines: {load: 5 GiB}}}\n"),
              HasSubstr("s.yaml:5:37: target.native.deadlines.load: unit 'GiB' does not fit"));
}

TEST_F(LoadError, ImpossibleShards) {
  const auto tp = [&](const std::string& model, int ranks) {
    return problems("scenario: s\nmodel: {preset: small-flash" + model +
                    "}\nlimits: {device_memory_bytes: 80 GiB}\nparallel: {tp: " +
                    std::to_string(ranks) + "}\n");
  };
  EXPECT_EQ(tp("", 4), "");
  EXPECT_THAT(tp("", 8), HasSubstr("s.yaml:4:16: parallel.tp: tp 8 is above o_groups 4"));
  EXPECT_THAT(tp("", 3), HasSubstr("tp 3 does not divide o_groups 4"));
  EXPECT_THAT(tp("", 3), HasSubstr("tp 3 does not divide 8 attention heads"));
  EXPECT_THAT(tp("", 0), HasSubstr("too small; at least 1"));
  // The decode kernel takes 128 heads, not one more.
  EXPECT_EQ(tp(", num_attention_heads: 128", 1), "");
  EXPECT_THAT(tp(", num_attention_heads: 132", 1),
              HasSubstr("s.yaml:2:51: model.num_attention_heads: 132 heads on each of 1 ranks; the "
                        "decode kernel takes at most 128"));
  EXPECT_EQ(tp(", num_attention_heads: 256", 2), "");
}

TEST_F(LoadError, ImpossibleDrafters) {
  const auto drafter = [&](const std::string& text, const std::string& preset = "small-dspark") {
    return problems("scenario: s\nmodel: {preset: " + preset +
                    "}\nlimits: {device_memory_bytes: 80 GiB}\ndrafter: {" + text + "}\n");
  };
  EXPECT_EQ(drafter("method: dspark, num_speculative_tokens: 5"), "");
  EXPECT_EQ(drafter("method: dspark, num_speculative_tokens: 4"),
            "s.yaml:4:51: drafter.num_speculative_tokens: 4 is below the drafter's block_size 5");
  EXPECT_THAT(drafter("method: dspark"),
              HasSubstr("s.yaml:4:10: drafter.num_speculative_tokens: missing"));
  EXPECT_THAT(drafter("method: dspark, num_speculative_tokens: 5", "small-flash"),
              HasSubstr("drafter.block_size: missing; no preset gives it for method dspark"));
  EXPECT_EQ(
      drafter("method: dspark, num_speculative_tokens: 5, block_size: 5, layers: 1", "small-flash"),
      "");
  EXPECT_EQ(drafter("method: mtp, num_speculative_tokens: 1"), "");
  EXPECT_THAT(drafter("method: dspark, num_speculative_tokens: 5, target_layer_ids: [5]"),
              HasSubstr("drafter.target_layer_ids: layer 5 of 5, counted from 0"));
  EXPECT_THAT(drafter("method: dspark, num_speculative_tokens: 5, noise_token_id: 4096"),
              HasSubstr("drafter.noise_token_id: 4096 of 4096 tokens"));
  EXPECT_THAT(drafter("topk_indices_buffer: absent"),
              HasSubstr("s.yaml:4:11: drafter.topk_indices_buffer: there is no drafter"));
  EXPECT_EQ(drafter("method: none, topk_indices_buffer: absent"), "");
  EXPECT_THAT(drafter("method: eagle"), HasSubstr("expected one of none, dspark, mtp"));
  EXPECT_THAT(problems("scenario: s\nmodel: {preset: small-dspark}\n"
                       "limits: {device_memory_bytes: 80 GiB, max_num_batched_tokens: 5}\n"
                       "drafter: {method: dspark, num_speculative_tokens: 5}\n"),
              HasSubstr("s.yaml:3:63: limits.max_num_batched_tokens: 5 is too small to verify 5"));
}

TEST_F(LoadError, ImpossibleLengthsAndMemory) {
  const auto with = [&](const std::string& limits, const std::string& workload) {
    return problems("scenario: s\nmodel: {preset: small-flash}\nlimits: {" + limits +
                    "}\nworkload: {" + workload + "}\n");
  };
  EXPECT_THAT(with("device_memory_bytes: 1 GiB, max_model_len: 1048577", ""),
              HasSubstr("s.yaml:3:53: limits.max_model_len: 1048577 is over the model's "
                        "max_position_embeddings 1048576"));
  const std::string small = "device_memory_bytes: 1 GiB, max_model_len: 100";
  EXPECT_EQ(with(small, "requests: 1, prompt_tokens: 60, output_tokens: 40"), "");
  EXPECT_EQ(with(small, "requests: 1, prompt_tokens: 60, output_tokens: 41"),
            "s.yaml:4:40: workload.prompt_tokens: prompt_tokens 60 and output_tokens 41 are "
            "together over max_model_len 100");
  EXPECT_THAT(with(small,
                   "groups: [{requests: 1, prompt_tokens: 1, output_tokens: 1}, "
                   "{requests: 1, prompt_tokens: 100, output_tokens: 1}]"),
              HasSubstr("s.yaml:4:72: workload.groups[1]: prompt_tokens 100"));
  EXPECT_THAT(with(small, "requests: 1"), HasSubstr("workload.prompt_tokens: missing"));
  EXPECT_THAT(with(small, "groups: [{requests: 1}]"),
              HasSubstr("workload.groups[0].prompt_tokens: missing"));
  EXPECT_THAT(with(small, "requests: 1, groups: []"),
              HasSubstr("s.yaml:4:25: workload.groups: groups and requests exclude each other"));
  EXPECT_THAT(
      with("device_memory_bytes: 1000000000, kv_pool_bytes: 1000000001", ""),
      HasSubstr("s.yaml:3:58: limits.kv_pool_bytes: 1000000001 is over the device's memory"));
  EXPECT_THAT(with("max_model_len: 5", ""),
              HasSubstr("s.yaml:3:9: limits.device_memory_bytes: missing"));
}

TEST_F(LoadError, ImpossibleModels) {
  const auto model = [&](const std::string& text) {
    return problems("scenario: s\nlimits: {device_memory_bytes: 1 GiB}\nmodel: {" + text + "}\n");
  };
  const std::string inline_model =
      "hidden_size: 64, num_attention_heads: 8, q_lora_rank: 8, o_groups: 4, o_lora_rank: 8, ";
  EXPECT_EQ(model(inline_model + "layers: [{ratio: 4, count: 3}, {ratio: 0}]"), "");
  EXPECT_THAT(model("layers: [{ratio: 4}]"), HasSubstr("model.hidden_size: missing"));
  EXPECT_THAT(model(inline_model + "layers: []"), HasSubstr("at least 1 entry"));
  EXPECT_THAT(model(inline_model + "layers: [{ratio: 8}]"),
              HasSubstr("model.layers[0].ratio: expected one of 0, 1, 4, 128, got '8'"));
  EXPECT_THAT(model(inline_model + "layers: [{count: 8}]"),
              HasSubstr("model.layers[0].ratio: missing"));
  EXPECT_THAT(model(inline_model + "layers: [{ratio: 4, count: 300}, {ratio: 4, count: 300}]"),
              HasSubstr("more than 512 layers"));
  EXPECT_THAT(model("preset: small-flash, compress_ratios: [0, 2]"),
              HasSubstr("s.yaml:3:51: model.compress_ratios[1]: expected one of 0, 1, 4, 128"));
  EXPECT_THAT(model("preset: small-flash, compress_ratios: [0, 4]"),
              HasSubstr("s.yaml:3:47: model.compress_ratios: 2 entries for 5 layers"));
  EXPECT_THAT(model("preset: small-flash, layers: [{ratio: 4}], compress_ratios: [4]"),
              HasSubstr("exclude each other"));
  EXPECT_THAT(model("preset: small-flash, qk_rope_head_dim: 63"), HasSubstr("must be even"));
  EXPECT_THAT(model("preset: small-flash, num_experts_per_tok: 9"), HasSubstr("9 of 8 experts"));
  EXPECT_THAT(model("preset: smal-flash"),
              HasSubstr("s.yaml:3:17: model.preset: no preset 'smal-flash'"));
  EXPECT_THAT(model("preset: smal-flash"), HasSubstr("did you mean small-flash?"));
  EXPECT_THAT(model("preset: ../models/small-flash"), HasSubstr("expected a name"));
  EXPECT_THAT(problems("scenario: s\nlimits: {device_memory_bytes: 1 GiB}\n"),
              HasSubstr("model: missing; a native target needs a model"));
}

TEST_F(LoadError, NamesThatDoNotExist) {
  const std::string ab = std::string(kSmall) + "variants: {A: {}, B: {seed: 1}}\n";
  EXPECT_THAT(problems(ab + "expect: {a2: {outcome: passed}}\n"),
              HasSubstr("s.yaml:6:10: expect.a2: no variant 'a2'; did you mean A?"));
  EXPECT_THAT(problems(ab + "expect: {outcome: passed}\n"),
              HasSubstr("the scenario has variants, so expect is per variant: A, B"));
  EXPECT_THAT(problems(ab + "expect: {A: {phase: warm}}\n"), HasSubstr("did you mean warmup?"));
  EXPECT_THAT(problems(ab + "expect: {A: {contract: keys-vlid}}\n"),
              HasSubstr("s.yaml:6:24: expect.A.contract: 'keys-vlid' is no contract; did you mean "
                        "keys-valid?"));
  EXPECT_THAT(problems(std::string(kSmall) + "expect: {outcom: passed}\n"),
              HasSubstr("s.yaml:5:10: expect.outcom: unknown key; did you mean outcome?"));
  EXPECT_THAT(problems(ab + "gate: {kv_byte: {max: 1}}\n"),
              HasSubstr("s.yaml:6:8: gate.kv_byte: 'kv_byte' is no figure or contract; did you "
                        "mean kv_bytes?"));
  EXPECT_THAT(problems(ab + "allow: [{contract: keys-covred, reason: r}]\n"),
              HasSubstr("s.yaml:6:20: allow[0].contract: 'keys-covred' is no contract"));
  EXPECT_THAT(problems(ab + "allow: [{contract: keys-covered}]\n"),
              HasSubstr("allow[0].reason: missing"));
  EXPECT_THAT(problems(ab + "allow: [{contract: keys-covered, reason: r, variants: [A, D]}]\n"),
              HasSubstr("s.yaml:6:59: allow[0].variants[1]: no variant 'D'"));
  EXPECT_THAT(problems(ab + "allow: [{contract: protocol, reason: r, until: 2026-02-30}]\n"),
              HasSubstr("expected a day as YYYY-MM-DD"));
  EXPECT_THAT(problems(std::string(kSmall) + "variants: {\"A[x]\": {}}\n"),
              HasSubstr("expected a name of letters"));
  EXPECT_THAT(problems(std::string(kSmall) + "devices: {gpu: {}}\n"),
              HasSubstr("devices.gpu: unknown key; did you mean cpu?"));
  EXPECT_THAT(problems(std::string(kSmall) + "seams: {profile.topk_bond: kind_aware}\n"),
              HasSubstr("did you mean profile.topk_bound?"));
  EXPECT_THAT(problems(std::string(kSmall) + "architectures: []\n"), HasSubstr("at least 1 entry"));
  EXPECT_THAT(problems(std::string(kSmall) + "architectures: [sm_90a, sm90]\n"),
              HasSubstr("s.yaml:5:25: architectures[1]: expected an architecture such as sm_90a"));
  EXPECT_THAT(problems(std::string(kSmall) + "architectures: [sm_90a, sm_90a]\n"),
              HasSubstr("listed twice"));
  EXPECT_THAT(problems(std::string(kSmall) + "ranks: {1: {seed: 5}}\n"),
              HasSubstr("s.yaml:5:9: ranks.1: there is no rank 1; tp is 1"));
  EXPECT_THAT(problems(std::string(kSmall) + "ranks: {-1: {seed: 5}}\n"), HasSubstr("a rank, 0"));
}

TEST_F(LoadError, GatesThatSayNothing) {
  const auto gate = [&](const std::string& text) {
    return problems(std::string(kSmall) + "gate: {" + text + "}\n");
  };
  EXPECT_EQ(gate("keys-reachable: {}, kv_bytes: {regress: {by: 1 %}, direction: higher}, "
                 "compiles_after_ready: {new: 0}"),
            "");
  EXPECT_THAT(gate("kv_bytes: {}"), HasSubstr("says nothing"));
  EXPECT_THAT(gate("kv_bytes: {direction: higher}"), HasSubstr("says nothing"));
  EXPECT_THAT(gate("kv_bytes: {regress: {}}"), HasSubstr("says nothing; give by, and, or both"));
  EXPECT_THAT(gate("keys-valid: {max: 3}"), HasSubstr("a contract is kept or broken"));
  EXPECT_THAT(gate("kv_bytes: {min: 5, max: 4}"), HasSubstr("min 5 is above max 4"));
  EXPECT_THAT(gate("skips: {new: -1}"), HasSubstr("too small"));
}

TEST_F(LoadError, Targets) {
  EXPECT_THAT(problems("scenario: s\ntarget: {command: {argv: python3 worker.py}}\n"),
              HasSubstr("s.yaml:2:26: target.command.argv: expected a list such as [prog, --flag, "
                        "value]; a command line as one text is not taken"));
  EXPECT_THAT(problems("scenario: s\ntarget: {command: {argv: []}}\n"), HasSubstr("at least 1"));
  EXPECT_THAT(problems("scenario: s\ntarget: {command: {}}\n"),
              HasSubstr("target.command.argv: missing"));
  EXPECT_THAT(problems("scenario: s\ntarget: {server: {vllm: {}}}\n"),
              HasSubstr("s.yaml:2:19: target.server.vllm: unknown key"));
  EXPECT_THAT(problems("scenario: s\ntarget: {native: {}, command: {argv: [a]}}\n"),
              HasSubstr("command and native exclude each other"));
  EXPECT_THAT(problems("scenario: s\ntarget: {command: {argv: [a], phases: [load, warm]}}\n"),
              HasSubstr("did you mean warmup?"));
  EXPECT_THAT(problems("scenario: s\ntarget: {command: {argv: [a], env: {\"A=B\": c}}}\n"),
              HasSubstr("environment variable"));
  EXPECT_THAT(problems("scenario: s\ntarget: {command: {argv: [a], silence: -1 s}}\n"),
              HasSubstr("too small"));
}

TEST_F(LoadError, AValueWrongInOneVariantSaysWhich) {
  const std::string text = problems(std::string(kSmall) +
                                    "variants:\n"
                                    "  A: {}\n"
                                    "  B: {parallel: {tp: 8}}\n");
  EXPECT_EQ(text,
            "s.yaml:7:22: variants.B.parallel.tp: tp 8 is above o_groups 4; a rank would have no "
            "output group (variant B)");
  const std::string base =
      problems(std::string(kSmall) + "parallel: {tp: 8}\nvariants: {A: {}, B: {}}\n");
  EXPECT_THAT(base, HasSubstr("s.yaml:5:16: parallel.tp"));
  EXPECT_THAT(base, Not(HasSubstr("(variant")));
}

TEST_F(LoadError, ProblemsInBehavioursAreShownThere) {
  write("b.yaml", "behaviour: b\norigin: [{repo: a/b}]\nseams: {jit.compiler: loose}\n");
  EXPECT_THAT(problems(std::string(kSmall) + "behaviour: b.yaml\n"),
              HasSubstr("b.yaml:3:23: seams.jit.compiler: expected one of strict, lenient"));
  write("c.yaml", "behaviour: other\norigin: [{repo: a/b}]\n");
  EXPECT_THAT(problems(std::string(kSmall) + "behaviour: c.yaml\n"),
              HasSubstr("c.yaml:1:12: behaviour: 'other' is not the name of the file"));
  EXPECT_THAT(problems(std::string(kSmall) + "behaviour: [vllm-rev-a, vllm-pr5693]\n"),
              HasSubstr("s.yaml:5:25: behaviour[1]: no behaviour 'vllm-pr5693'"));
  EXPECT_THAT(problems(std::string(kSmall) + "behaviour: vllm-pr5693\n"),
              HasSubstr("did you mean vllm-pr50693?"));
}

TEST_F(LoadError, HostileFilesEndInProblems) {
  std::string wide = kSmall;
  wide += "matrix: {seed: [";
  for (int i = 0; i < 64; ++i) wide += std::to_string(i) + (i < 63 ? ", " : "], ");
  wide += "limits.max_num_seqs: [";
  for (int i = 1; i <= 64; ++i) wide += std::to_string(i) + (i < 64 ? ", " : "]}\n");
  EXPECT_THAT(problems(wide), HasSubstr("the matrix gives more than 256 variants"));
  std::string errors = "scenario: s\n";
  for (int i = 0; i < 3000; ++i) errors += "k" + std::to_string(i) + ": 1\n";
  const auto text = problems(errors);
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 100);
  EXPECT_THAT(problems(std::string(kSmall) + "seed: \"\\x07\\x1b[31m\"\n"), Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace warmgate::scenario
