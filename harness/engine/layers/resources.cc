#include "harness/engine/layers/resources.h"

#include <fmt/format.h>

#include "harness/engine/layers/layer_state.h"

namespace warmgate::engine {

std::string_view to_string(Resource resource) {
  switch (resource) {
    case Resource::kTopkIndicesBuffer:
      return "topk_indices_buffer";
    case Resource::kSwaCache:
      return "swa_cache";
    case Resource::kCompressedCache:
      return "compressed_cache";
    case Resource::kCompressor:
      return "compressor";
    case Resource::kStateCache:
      return "state_cache";
    case Resource::kIndexer:
      return "indexer";
    case Resource::kIndexerCache:
      return "indexer_cache";
    case Resource::kIndexerStateCache:
      return "indexer_state_cache";
    case Resource::kAttnSink:
      return "attn_sink";
    case Resource::kAuxStreams:
      return "aux_streams";
    case Resource::kEagerScratch:
      return "eager_scratch";
    case Resource::kCount:
      break;
  }
  return "?";
}

std::vector<std::string> Owned::names() const {
  std::vector<std::string> out;
  for (unsigned i = 0; i < static_cast<unsigned>(Resource::kCount); ++i) {
    const auto resource = static_cast<Resource>(i);
    if (has(resource)) out.emplace_back(to_string(resource));
  }
  return out;
}

Owned built_in(Kind kind) {
  Owned owned;
  owned.add(Resource::kSwaCache);
  owned.add(Resource::kAttnSink);
  if (kind == Kind::kSwaOnly) return owned;
  owned.add(Resource::kCompressedCache);
  owned.add(Resource::kCompressor);
  owned.add(Resource::kStateCache);
  if (kind == Kind::kC128a) return owned;
  owned.add(Resource::kIndexer);
  owned.add(Resource::kIndexerCache);
  owned.add(Resource::kIndexerStateCache);
  return owned;
}

void require(Context& context, LayerState& layer, Resource resource,
             const std::source_location& caller) {
  const bool owned = layer.owned.has(resource);
  if (layer.demands.first(context.recorder.phase(), resource) || !owned) {
    trace::Line line("requires");
    line.num("layer", layer.ref.id).str("layer_kind", layer.ref.kind).str("role", layer.ref.role);
    line.str("resource", to_string(resource)).flag("owned", owned);
    line.str("phase", context.recorder.phase());
    context.recorder.send(line);
  }
  if (owned) return;
  throw ResourceMissing(
      fmt::format("layer {} ({} {}) requires {}, which it does not own", layer.ref.id,
                  layer.ref.role, layer.ref.kind, to_string(resource)),
      layer.ref, std::string(to_string(resource)), caller.function_name(), caller.file_name(),
      static_cast<int>(caller.line()));
}

}  // namespace warmgate::engine
