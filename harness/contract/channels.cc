#include "harness/contract/channels.h"

#include <algorithm>

#include "harness/contract/probe_view.h"

namespace warmgate::contract {

namespace {

constexpr Extent kNo = Extent::kNone, kInf = Extent::kInferred, kPart = Extent::kPartial,
                 kAll = Extent::kFull;

}  // namespace

std::string_view to_string(Extent extent) {
  switch (extent) {
    case Extent::kNone:
      return "none";
    case Extent::kInferred:
      return "inferred";
    case Extent::kPartial:
      return "partial";
    case Extent::kFull:
      return "full";
  }
  return "none";
}

const std::vector<ChannelInfo>& channels() {
  static const std::vector<ChannelInfo> all = {
      {"log", "what it prints, read by its grammar", ""},
      {"http", "health, metrics, and the requests it is asked", ""},
      {"process", "its processes: how they end, what they leave", ""},
      {"stores", "files in its caches, compilers among its children", ""},
      {"spans", "its own spans (OpenTelemetry)", "spans"},
      {"python", "a plugin in its Python processes", "python"},
      {"nccl", "a profiler plugin of NCCL", "nccl"},
      {"cuda", "the CUDA driver in its processes", "cuda"},
      {"core", "a core dump of CUDA's, made when it hangs", "core"},
      {"own", "events that the engine itself sends", ""},
  };
  return all;
}

std::size_t channel_index(std::string_view name) {
  const auto it = std::find_if(channels().begin(), channels().end(),
                               [&](const ChannelInfo& each) { return each.name == name; });
  return static_cast<std::size_t>(it - channels().begin());
}

const std::vector<ContractChannels>& contract_channels() {
  static const std::vector<ContractChannels> all = {
      // log http process stores spans python nccl cuda core own
      {"protocol", {kNo, kNo, kNo, kNo, kNo, kNo, kNo, kNo, kNo, kAll}, ""},
      {"starts",
       {kPart, kInf, kPart, kNo, kPart, kPart, kNo, kNo, kInf, kAll},
       "a log names what it printed, a process only how it ended, spans no phase whose process was "
       "killed in it, the plugin of Python what was raised there, a core dump the kernel of a "
       "hang; http knows that serving was reached"},
      {"owned-resources", {kNo, kNo, kNo, kNo, kNo, kNo, kNo, kNo, kNo, kAll}, ""},
      {"keys-valid", {kNo, kNo, kNo, kNo, kNo, kNo, kNo, kNo, kNo, kAll}, ""},
      {"keys-reachable", {kNo, kNo, kNo, kNo, kNo, kNo, kNo, kNo, kNo, kAll}, ""},
      {"keys-covered",
       {kPart, kNo, kNo, kPart, kNo, kPart, kNo, kNo, kNo, kAll},
       "compilations after ready that the log says, that leave a file or a compiler's process, or "
       "that "
       "are Triton's; launches are not seen"},
      {"signatures-match", {kNo, kNo, kNo, kNo, kNo, kNo, kNo, kNo, kNo, kAll}, ""},
      {"workspace-fits",
       {kNo, kNo, kNo, kNo, kNo, kPart, kNo, kNo, kNo, kAll},
       "only a workspace that the plugin knows (vLLM's)"},
      {"memory-covers", {kNo, kNo, kNo, kNo, kNo, kNo, kNo, kNo, kNo, kAll}, ""},
      {"dummy-legal", {kNo, kNo, kNo, kNo, kNo, kNo, kNo, kNo, kNo, kAll}, ""},
      {"warmup-complete", {kNo, kNo, kNo, kNo, kNo, kNo, kNo, kNo, kNo, kAll}, ""},
      {"ready-honest",
       {kPart, kPart, kNo, kNo, kPart, kPart, kNo, kNo, kNo, kAll},
       "http: health, and what is asked then; log, spans and Python's plugin: phases that had not "
       "ended, the log's no finer than a second, the plugin's of vLLM alone"},
      {"ranks-agree",
       {kNo, kNo, kNo, kNo, kNo, kNo, kPart, kNo, kNo, kAll},
       "collectives that do not go through NCCL"},
      {"nothing-left-behind",
       {kNo, kNo, kPart, kNo, kNo, kNo, kNo, kNo, kNo, kAll},
       "processes, files, ports, shared memory and memory of GPUs; no blocks of the KV cache"},
      {"numerics", {kNo, kNo, kNo, kNo, kNo, kNo, kNo, kNo, kNo, kAll}, ""},
      {"stores-declared", {kNo, kNo, kNo, kAll, kNo, kNo, kNo, kNo, kNo, kNo}, ""},
      {"speculation-live", {kNo, kAll, kNo, kNo, kNo, kNo, kNo, kNo, kNo, kNo}, ""},
      {"answers-differ", {kNo, kAll, kNo, kNo, kNo, kNo, kNo, kNo, kNo, kNo}, ""},
      {"code-ready", {kNo, kNo, kNo, kNo, kNo, kNo, kNo, kAll, kNo, kNo}, ""},
      {"memory-kept",
       {kNo, kNo, kNo, kNo, kNo, kNo, kNo, kPart, kNo, kNo},
       "a pointer inside device memory, or one of a copy's or fill's node, is not seen"},
      {"spans-agree", {kNo, kNo, kNo, kNo, kAll, kNo, kNo, kNo, kNo, kNo}, ""},
      {"graph-stable", {kNo, kNo, kNo, kNo, kNo, kNo, kNo, kNo, kNo, kAll}, ""},
      {"cache-sound", {kNo, kNo, kNo, kNo, kNo, kNo, kNo, kNo, kNo, kAll}, ""},
  };
  return all;
}

const ContractChannels* channels_of(std::string_view contract) {
  for (const ContractChannels& row : contract_channels()) {
    if (row.contract == contract) return &row;
  }
  return nullptr;
}

std::string shown_by(std::string_view contract, const View& view) {
  const ContractChannels* row = channels_of(contract);
  if (row == nullptr) return "";
  const std::size_t own = channel_index("own");
  const auto& events = view.trace().events;
  const bool speaks = std::any_of(events.begin(), events.end(), [](const trace::Event& e) {
    return e.ev == "hello" && e.src == "channel";
  });
  std::string probes;
  for (std::size_t i = 0; i < kChannels; ++i) {
    const std::string_view probe = channels()[i].probe;
    const bool shows = row->extents[i] == Extent::kPartial || row->extents[i] == Extent::kFull;
    if (probe.empty() || !shows || was_asked(view, probe)) continue;
    probes += (probes.empty() ? "--probe " : ",") + std::string(probe);
  }
  if (!probes.empty()) return probes + " shows it";
  if (!speaks && row->extents[own] != Extent::kNone) return "the engine's own events show it";
  return "";
}

}  // namespace warmgate::contract
