// Sparse attention on the host.
#include <algorithm>
#include <cstring>
#include <vector>

#include "harness/engine/ops/cpu_tensor.h"
#include "harness/engine/ops/cpu_threads.h"
#include "harness/engine/ops/sparse_attention.h"
#include "kernels/cpu/sparse_attention.h"
#include "kernels/cpu/topk.h"

namespace warmgate::engine::ops {

using namespace host;

namespace {

/// Rows of indices of which all columns count, each through `map`. A row of length 0 (no token)
/// stays without keys.
struct WholeRows {
  WholeRows() = default;
  template <class Map>
  WholeRows(const std::int32_t* from, const std::int32_t* lens_in, std::int64_t tokens,
            std::int64_t width, Map map)
      : indices(static_cast<std::size_t>(tokens * width)), lens(lens_in, lens_in + tokens) {
    for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = map(from[i]);
    for (std::int32_t& length : lens) length = length > 0 ? static_cast<std::int32_t>(width) : 0;
  }
  std::vector<std::int32_t> indices, lens;
};

}  // namespace

void run(const DequantGather& p, const Device& device) {
  need_host(p.kernel, device);
  kernel::DequantGather g;
  g.requests = p.kv.rows();
  g.ratio = p.ratio;
  g.offset = p.offset;
  g.request_stride = p.kv.strides[0];
  g.seq_lens = i32(p.lens) + p.first_request;
  g.gather_lens = i32(p.gather_lens);
  g.pages = pages(p.cache);
  g.table = table(p.table, p.cache.dim(1), p.first_request);
  g.kv = bf16(p.kv);
  kernel::dequant_gather(g);
}

void run(const SparsePrefill& p, const Device& device) {
  need_host(p.kernel, device);
  kernel::SparsePrefill a;
  a.tokens = p.q.rows();
  a.heads = p.q.dim(1);
  a.width = p.indices.last();
  a.q = bf16(p.q);
  a.kv = bf16(p.kv);
  a.indices = i32(p.indices);
  a.lens = i32(p.lens);
  a.sink = fp32(p.sink);
  a.out = bf16(p.out);
  WholeRows whole;
  if (!p.honours_lens) {
    whole = WholeRows(a.indices, a.lens, a.tokens, a.width,
                      [&](std::int32_t index) { return index < p.kv.rows() ? index : -1; });
    a.indices = whole.indices.data();
    a.lens = whole.lens.data();
  }
  // Padding heads cost next to nothing; eight are a guess at the real ones.
  share_rows(a.tokens, 4, a.tokens * a.width * 8 * 2 * kernel::kHeadDim,
             [&](std::int64_t begin, std::int64_t end) {
               kernel::SparsePrefill part = a;
               part.tokens = end - begin;
               part.q += begin * a.heads * kernel::kHeadDim;
               part.out += begin * a.heads * kernel::kHeadDim;
               part.indices += begin * a.width;
               part.lens += begin;
               kernel::sparse_prefill(part);
             });
}

void run(const SparseDecode& p, const Device& device) {
  need_host(p.kernel, device);
  kernel::SparseDecode a;
  a.tokens = p.q.rows();
  a.heads = p.q.dim(2);
  a.width = p.indices.last();
  a.q = bf16(p.q);
  a.window = pages(p.cache);
  a.indices = i32(p.indices);
  a.lens = i32(p.lens);
  if (p.extra_cache.present()) {
    a.extra_width = p.extra_indices.last();
    a.extra = pages(p.extra_cache);
    a.extra_indices = i32(p.extra_indices);
    a.extra_lens = i32(p.extra_lens);
  }
  a.sink = fp32(p.sink);
  a.out = bf16(p.out);
  WholeRows whole;
  if (p.counts_padding) {
    whole = WholeRows(a.indices, a.lens, a.tokens, a.width,
                      [](std::int32_t index) { return std::max(index, 0); });
    a.indices = whole.indices.data();
    a.lens = whole.lens.data();
  }
  kernel::sparse_decode(a);
}

void run(const GlobalTopkIndices& p, const Device& device) {
  need_host(p.kernel, device);
  kernel::global_topk_indices({p.global.rows(), p.global.last(), i32(p.local), i32(p.token_to_req),
                               table(p.table, p.block_rows), bytes(p.is_valid), i32(p.global),
                               i32(p.lens)});
}

// One thread walks all tokens: there are no tiles to share out.
void run(const TilePlan& p, const Device& device) { need_host(p.kernel, device); }

void run(const ZeroFill& p, const Device& device) {
  need_host(p.kernel, device);
  std::memset(at<void>(p.out), 0, static_cast<std::size_t>(p.out.payload_bytes()));
}

}  // namespace warmgate::engine::ops
