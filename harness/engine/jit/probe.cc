#include "harness/engine/jit/probe.h"

namespace warmgate::engine {

void probe_keys(KernelSet& kernels, const Recorder& recorder) {
  for (const std::string_view kernel :
       {jit::kComputePrefillMetadata, jit::kBuildPrefillChunkMetadata,
        jit::kCombineTopkSwaIndices}) {
    for (const jit::Key& key : kernels.warmup_keys(kernel)) {
      const jit::HostCheck check = kernels.probe(key);
      trace::Line line("check");
      line.str("tensor", key.text()).str("kind", "probe").str("kernel", kernel);
      line.flag("ok", check.ok).str("phase", recorder.phase());
      if (!check.ok) {
        line.str("fault", check.fault).str("message", check.message).str("file", check.file);
        line.num("line", check.line);
      }
      recorder.send(line);
    }
  }
}

}  // namespace warmgate::engine
