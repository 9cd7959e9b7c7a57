#include "harness/engine/memory/workspace_plan.h"

namespace warmgate::engine {

std::int64_t prefill_rows(const Dims& dims, Kind kind) {
  const std::int64_t compressed =
      kind == Kind::kSwaOnly ? 0 : ceil_div(dims.max_model_len, ratio_of(kind));
  return compressed + dims.window + dims.max_tokens;
}

std::array<ViewSpec, 3> attention_views(const Dims& dims, std::int64_t requests, std::int64_t rows,
                                        std::int64_t topk) {
  return {ViewSpec(DType::kBf16, {requests, rows, dims.head_dim}),
          ViewSpec(DType::kI32, {dims.max_tokens, round_up(topk + dims.window, 128)}),
          ViewSpec(DType::kI32, {dims.max_tokens})};
}

std::array<ViewSpec, 3> indexer_views(const Dims& dims, std::int64_t keys) {
  return {ViewSpec(DType::kU8, {keys, dims.indexer_value_bytes()}),
          ViewSpec(DType::kU8, {keys, dims.indexer_scale_bytes()}),
          ViewSpec(DType::kU8, {kTopkScratchBytes})};
}

std::int64_t served_topk(const Dims& dims, Kind kind) {
  switch (kind) {
    case Kind::kSwaOnly:
      return 0;
    case Kind::kC4a:
      return dims.topk;
    case Kind::kC128a:
      return dims.c128a_stride();
  }
  return 0;
}

std::int64_t reserved_topk(const Dims& dims, Kind kind, bool by_buffer_width) {
  if (kind == Kind::kC128a && by_buffer_width) return dims.topk;
  return served_topk(dims, kind);
}

std::vector<WorkspaceRow> workspace_plan(const Dims& dims, std::string_view reservation) {
  const bool by_buffer_width = reservation == "topk_buffer_width", none = reservation == "none";
  std::vector<WorkspaceRow> rows;
  for (const Kind kind : {Kind::kSwaOnly, Kind::kC4a, Kind::kC128a}) {
    if (!dims.has(kind)) continue;
    const auto bytes = [&](std::int64_t topk) {
      return Workspace::bytes_of(
          attention_views(dims, kPrefillChunkRequests, prefill_rows(dims, kind), topk));
    };
    rows.push_back({to_string(kind), "attention",
                    none ? 0 : bytes(reserved_topk(dims, kind, by_buffer_width)),
                    bytes(served_topk(dims, kind))});
  }
  if (dims.has(Kind::kC4a)) {
    const std::int64_t bytes = Workspace::bytes_of(indexer_views(dims, dims.indexer_gather_rows()));
    rows.push_back({to_string(Kind::kC4a), "indexer", none ? 0 : bytes, bytes});
  }
  return rows;
}

std::vector<WorkspaceRow> workspace_plan(const scenario::Resolved& config) {
  return workspace_plan(make_dims(config), config.seams.at("workspace.reservation"));
}

}  // namespace warmgate::engine
