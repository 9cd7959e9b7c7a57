#include "harness/scenario/contract_names.h"

#include <algorithm>

namespace warmgate::scenario {

const std::vector<ContractName>& contract_names() {
  static const std::vector<ContractName> names = {
      {"protocol", false, "the event protocol is kept, from hello to bye"},
      {"starts", false, "every phase ends; the first worker that failed is named"},
      {"owned-resources", false, "a layer owns what a phase requires of it"},
      {"keys-valid", false, "every warmed key runs on the host and compiles for each architecture"},
      {"keys-reachable", false, "warmed keys are keys that the dispatcher can produce"},
      {"keys-covered", false, "keys launched in serve were warmed"},
      {"signatures-match", false, "argument signatures agree between warmup and serve"},
      {"workspace-fits", false, "each layer kind alone reserved the workspace it uses"},
      {"memory-covers", false, "the peak of profiling covers the peak of serving"},
      {"graph-stable", false, "a captured graph replays what eager mode does"},
      {"nothing-left-behind", false, "no process, file or memory stays afterwards"},
      {"dummy-legal", false, "dummy batches obey the limits of real ones"},
      {"ranks-agree", false, "ranks enter the same operations in the same order"},
      {"warmup-complete", false, "every requested warmup step ran, and reached what serving needs"},
      {"ready-honest", false, "ready is not said before warmup is done"},
      {"numerics", false, "outputs agree with the float64 oracle"},
      {"speculation-live", false, "drafts are made and counted consistently"},
      {"stores-declared", false,
       "cache stores are as asked for, and written only where told to be"},
      {"answers-differ", false, "different prompts do not all get one answer"},
      {"code-ready", false, "no code is compiled for a device after ready or inside a capture"},
      {"memory-kept", false,
       "memory that a graph names stays; no large piece is taken after ready"},
      {"spans-agree", false, "the engine's spans tell of the same start as its log"},
      {"cache-sound", false, "the kernel cache survives concurrent starts and damage"},
      {"shape-in-domain", false, "every reachable shape has a kernel"},
      {"capacity-equal", true, "both sides have the same KV bytes"},
      {"stream-equal", true, "both sides give the same tokens"},
      {"set-growth", true, "no new compiles, skips, kernels or warnings"},
      {"time", true, "not slower than the other side"},
  };
  return names;
}

const ContractName* find_contract_name(std::string_view name) {
  const auto& all = contract_names();
  const auto it =
      std::find_if(all.begin(), all.end(), [&](const ContractName& c) { return c.name == name; });
  return it == all.end() ? nullptr : &*it;
}

}  // namespace warmgate::scenario
