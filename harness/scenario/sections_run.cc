// Limits, parallel, workload, seams, target and the small keys of an overlay.
#include "harness/scenario/field_makers.h"
#include "harness/scenario/seams.h"
#include "harness/scenario/sections.h"
#include "harness/trace/vocabulary.h"

namespace warmgate::scenario {

using namespace makers;

Field limits_section() {
  return object(
      "limits", "what the engine is started with",
      {integer("max_model_len", "L, longest context; default max_position_embeddings", 1, 1 << 30),
       otherwise(integer("max_num_batched_tokens", "B, tokens of a step", 1, 1 << 22), "8192"),
       otherwise(integer("max_num_seqs", "S, requests of a step", 1, 1 << 20), "1024"),
       bytes("device_memory_bytes", "memory of one device; no default"),
       real("gpu_memory_utilization", "part of it that the engine may take", 0.01, 1),
       bytes("kv_pool_bytes", "KV pool; replaces the sizing, the profile run stays"),
       boolean("async_scheduling", "two batches in flight")});
}

Field parallel_section() {
  return object("parallel", "how many ranks",
                {otherwise(integer("tp", "tensor-parallel ranks, one process each", 1, 64), "1"),
                 seconds("collective_deadline", "how long a rank waits for the others")});
}

Field workload_section() {
  const auto group = [] {
    return std::vector<Field>{
        integer("requests", "how many", 1, 1000000),
        integer("prompt_tokens", "length of each prompt", 1, 1 << 30),
        integer("output_tokens", "tokens to generate for each", 1, 1 << 30),
        otherwise(integer("start_step", "serve step at which they arrive", 0, 1 << 30), "0"),
        otherwise(name("class", "request class, for figures"), "greedy")};
  };
  auto fields = group();
  auto whole = group();
  for (std::size_t i = 0; i < 3; ++i) whole[i].required = true;
  Field groups = list("groups", "several kinds of requests", object("", "one kind", whole));
  groups.max_items = 64;
  fields.push_back(std::move(groups));
  Field workload =
      object("workload", "what is served: one kind of request, or groups of them", fields);
  workload.either = {{"groups"},
                     {"requests", "prompt_tokens", "output_tokens", "start_step", "class"}};
  return workload;
}

Field seams_section() {
  std::vector<Field> fields;
  for (const SeamRule& seam : seams()) {
    fields.push_back(otherwise(choice(seam.name, seam.meaning, seam.values), seam.values.front()));
  }
  return object("seams", "choices at which revisions of the modelled engine differ",
                std::move(fields));
}

Field target_section() {
  const auto common = [](std::vector<Field> fields) {
    fields.push_back(
        named("env", "added to the environment", Keys::kEnvironment, element(Type::kText)));
    fields.push_back(named("deadlines", "seconds per phase; default: every other phase",
                           Keys::kPhaseOrDefault, seconds("", "")));
    fields.push_back(seconds("silence", "no event and no output for this long is a hang"));
    fields.push_back(bytes("memory", "address space of each worker"));
    return fields;
  };
  Field argv = list("argv", "program and arguments, never through a shell", element(Type::kText));
  argv.min_items = 1;
  std::vector<std::string_view> phase_names(trace::phases().begin(), trace::phases().end());
  Field phases = list("phases", "the order in which this program goes through phases",
                      choice("", "", phase_names));
  phases.min_items = 1;
  Field target = object(
      "target", "what is started",
      {object(
           "native", "our engine, one process per rank",
           common({otherwise(choice("device", "where it lives", {"meta", "cpu", "cuda"}), "meta"),
                   choice("cache",
                          "compiled kernels: cold = an empty cache of each run's own; "
                          "shared = the user's, or --cache-dir",
                          {"shared", "cold"})})),
       object("command", "any program that speaks the event protocol",
              common({std::move(argv), text("cwd", "its folder; default the scenario's"),
                      std::move(phases)})),
       server_section(common({}))});
  target.either = {{"native"}, {"command"}, {"server"}};
  return target;
}

Field behaviour_names() {
  return one_or_more("behaviour",
                     "files of fixtures/behaviours by name, or paths in the scenario's tree",
                     element(Type::kText));
}

Field architectures() {
  Field field =
      list("architectures", "GPU architectures to compile keys for; the first is the engine's own",
           element(Type::kArch));
  field.min_items = 1;
  field.max_items = 16;
  return otherwise(std::move(field), "[sm_90a]");
}

Field seed() { return integer("seed", "seed of sampled ids", 0, static_cast<double>(kMaxInteger)); }

Field probe_keys() {
  return boolean("probe_keys", "launch every warmed key once on poisoned outputs");
}

Field checks_section() {
  return object("checks",
                "how closely the engine's work is compared with the oracles, where it executes",
                {otherwise(choice("numerics", "rows that are compared", {"off", "sampled", "all"}),
                           "sampled"),
                 otherwise(choice("rope_reference",
                                  "the right rotation of window-only layers: as vLLM "
                                  "builds it, or as DeepSeek's reference code does",
                                  {"yarn", "plain"}),
                           "yarn")});
}

Field ranks_section() {
  return named("ranks", "changes the conditions of single ranks, over everything else", Keys::kRank,
               object("", "overlay of one rank",
                      {seams_section(), model_section(), limits_section(), drafter_section(),
                       architectures(), seed(), probe_keys()}));
}

}  // namespace warmgate::scenario
