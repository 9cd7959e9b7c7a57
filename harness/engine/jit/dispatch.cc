#include "harness/engine/jit/dispatch.h"

#include "harness/engine/jit/trace_dispatch.h"

namespace warmgate::engine {
namespace {

std::string word(IntClass c) {
  return c == IntClass::kOne ? "one" : c == IntClass::kDiv16 ? "div16" : "any";
}
std::string pointer(std::string_view name, bool aligned) {
  return std::string(name) + ":i32*@" + (aligned ? "16" : "4");
}

}  // namespace

std::vector<std::int64_t> IntRange::values() const {
  if (step == 0 || (step > 0) != (begin < end)) {
    throw std::invalid_argument("range " + std::to_string(begin) + ".." + std::to_string(end) +
                                " step " + std::to_string(step) + " has no values");
  }
  std::vector<std::int64_t> out;
  for (std::int64_t v = begin; step > 0 ? v < end : v > end; v += step) out.push_back(v);
  return out;
}

jit::Key to_key(const ComputePrefillKey& key) {
  return {std::string(jit::kComputePrefillMetadata),
          {{"BLOCK_SIZE", std::to_string(key.block_size)}}};
}

jit::Key to_key(const BuildChunkKey& key) {
  return {std::string(jit::kBuildPrefillChunkMetadata),
          {{"query_slice_start", word(key.query_slice_start)},
           {"query_slice_stop", word(key.query_slice_stop)},
           {"DCP_RANK", std::to_string(key.dcp_rank)},
           {"DCP_WORLD", std::to_string(key.dcp_world)},
           {"DCP_INTERLEAVE", std::to_string(key.dcp_interleave)},
           {"BLOCK_SIZE", std::to_string(key.block_size)},
           {"COMPRESS_RATIO", std::to_string(key.compress_ratio)},
           {"alignment", key.seq_lens_aligned ? "T" : "F"}}};
}

jit::Key to_key(const CombineKey& key) {
  std::string alignment;
  for (const bool aligned : key.aligned) alignment += aligned ? 'T' : 'F';
  return {std::string(jit::kCombineTopkSwaIndices),
          {{"COMPRESS_RATIO", std::to_string(key.compress_ratio)},
           {"TOP_K", std::to_string(key.top_k)},
           {"PADDED_TOP_K", std::to_string(key.padded_top_k)},
           {"WINDOW_SIZE", std::to_string(key.window_size)},
           {"alignment", alignment}}};
}

std::string signature_of(const ComputePrefillKey&) {
  return "gather_lens:i32*@16,query_start_loc:i32*@16,seq_lens:i32*@16,num_prefills:i32,"
         "num_decodes:i32,window:i32";
}

std::string signature_of(const BuildChunkKey& key) {
  return "key_starts:i32*@16,key_ends:i32*@16,key_requests:i32*@16,query_start_loc:i32*@4," +
         pointer("uncompressed_seq_lens", key.seq_lens_aligned) + ",query_slice_start:i32/" +
         word(key.query_slice_start) + ",query_slice_stop:i32/" + word(key.query_slice_stop);
}

std::string signature_of(const CombineKey& key) {
  return "combined_indices:i32*@16,combined_lens:i32*@16," +
         pointer("topk_indices", key.aligned[0]) + "," +
         pointer("query_start_loc", key.aligned[1]) + "," + pointer("seq_lens", key.aligned[2]) +
         "," + pointer("gather_lens", key.aligned[3]) +
         ",combined_stride:i32,topk_stride:i32,M:i32,N:i32";
}

jit::Key dispatch(const ComputePrefillInputs& inputs) {
  return to_key(DispatchComputePrefill()(StructReader(inputs)));
}
jit::Key dispatch(const BuildChunkInputs& inputs) {
  return to_key(DispatchBuildChunk()(StructReader(inputs)));
}
jit::Key dispatch(const CombineInputs& inputs) {
  return to_key(DispatchCombine()(StructReader(inputs)));
}

}  // namespace warmgate::engine
