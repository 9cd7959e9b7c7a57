// The facade between the engine's body (layers, ops, memory, metadata) and its phases.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/engine/context.h"
#include "harness/engine/ops/cost.h"

namespace warmgate::engine {

/// BatchRequest::request of a padding row.
inline constexpr std::int64_t kPadding = -1;

/// One request's part of a step. Batches are ordered decode-first by the caller.
struct BatchRequest {
  std::int64_t request = 0;   // row of the block tables, 0..max_num_seqs-1
  std::int64_t computed = 0;  // tokens whose KV is already stored (prefix length)
  std::int64_t query = 0;     // tokens of this step; positions computed .. computed+query-1
  /// [query] ids of these tokens; empty where nothing is executed or where contents do not matter
  /// (then they count as 0). The caller keeps them until the step is done.
  std::span<const std::int64_t> ids = {};
};
struct Batch {
  std::vector<BatchRequest> requests;
  bool dummy = false;  // slots -1, block tables zero
  /// Branches that the host takes in this step are taken again in every later one, as a captured
  /// graph takes them.
  bool recorded = false;
  /// Rows of one token, without a request, behind the others: up to so many tokens in all. They
  /// have no slot and see the null block.
  std::int64_t pad_to = 0;
  /// Context that shapes are made for, and that branches are taken by: at least so many tokens,
  /// however short the requests are. A graph has those of its longest replay.
  std::int64_t shape_length = 0, branch_length = 0;
  std::int64_t tokens() const;
};

/// One KV cache group of the packed slab.
struct KvGroup {
  std::string name;  // "full_mla", "c4_state", "c128_state", "swa_a", "swa_b"
  std::vector<std::string> layers;
  std::int64_t bytes = 0;  // one block: sum of padded pages
  std::int64_t block_tokens = 0;
  std::int64_t blocks_per_request = 0;  // one request of max_model_len
};
struct KvPlan {
  std::vector<KvGroup> groups;
  std::int64_t block_stride = 0;  // largest group
  std::int64_t num_blocks = 0;
  std::int64_t blocks_per_request = 0;
  std::int64_t pool_bytes = 0;
  double concurrency = 0;
  std::int64_t tokens = 0;  // int(concurrency * max_model_len)
};

/// What a phase may not leave changed.
struct EngineState {
  std::int64_t free_blocks = 0, held_blocks = 0;
  std::int64_t requests = 0;                // that hold blocks
  std::optional<std::uint64_t> null_block;  // digest of its contents, where there are any
  std::int64_t nan = 0;                     // in the null block, read as each cache reads it
};

class EngineModel {
 public:
  explicit EngineModel(Context& context);
  ~EngineModel();

  void load_target();      // weights, topk_indices_buffer, scratch, RoPE tables
  void load_draft();       // nothing without a drafter
  void announce_layers();  // `layer` events

  /// The metadata-less forward of profiling: tokens rows over `requests` requests, then the
  /// draft's.
  void profile_forward(std::int64_t tokens, std::int64_t requests);

  /// Groups, strides, blocks for `pool_bytes`; throws std::runtime_error if one request of
  /// max_model_len does not fit. Pure: allocates nothing.
  KvPlan plan_kv(std::int64_t pool_bytes) const;
  /// What init_kv and the first steps take for good besides the slab, in bytes: block tables, slot
  /// mappings, metadata buffers. Allocates nothing on the device.
  std::int64_t bytes_beside_slab() const;
  /// Slab, block tables, slot mappings, metadata builders (after profiling, as in the real engine).
  void init_kv(const KvPlan& plan);

  /// Blocks a request needs to hold `tokens` tokens, taken from / given back to the pool.
  /// False if the pool is short (nothing is taken then).
  bool grow_request(std::int64_t request, std::int64_t tokens);
  void free_window_blocks(std::int64_t request, std::int64_t computed);
  void release_request(std::int64_t request);
  std::int64_t free_blocks() const;

  /// The phase ends: its checks are sent. Nothing where nothing is executed.
  void end_phase();

  /// One forward step with metadata: target layers; draft layers too if `with_draft`.
  void step(const Batch& batch, bool with_draft);
  /// Id of a prompt's token: a hash of (seed, request, position). Where nothing is executed, that
  /// of a sampled token too.
  std::int64_t sample(std::int64_t request, std::int64_t position) const;
  /// Ops run and leave contents behind: ids are sampled from logits.
  bool executes() const;
  /// Of the last step, one a request of its batch: the id of the largest logit behind the request's
  /// last token, ties to the lower id. Empty where nothing is executed.
  std::span<const std::int64_t> sampled() const;

  /// Decode steps can be captured: the device has graphs, and no rank waits for another inside one.
  bool has_graphs() const;
  /// Captures a decode step of `size` rows, one token each: a dummy step that runs once eagerly,
  /// then with rebuilt metadata into the graph. From then on real steps of decodes are padded to
  /// the next captured size and replayed. `piecewise`: attention runs eagerly between pieces, and
  /// the host's branches are those of the short dummy step. Sends `capture`. Throws
  /// kernels::cuda::DeviceFault.
  void capture_graph(std::int64_t size, bool piecewise);

  EngineState state() const;
  /// The device's block tables [max_num_seqs,columns] i32, one a cache group, as the last step left
  /// them; rows past that step's requests are of earlier steps.
  std::vector<Tensor> block_tables() const;
  /// Every byte of what no step may rely on becomes `value`: input buffers, device tables and
  /// slots, top-k indices, the null block. Only where ops are executed.
  void spoil(std::uint8_t value);
  /// The null block is zeros again, unless a step wrote into it since spoil(): then it stays.
  void restore_null_block();
  /// From now on each step writes a digest of its logits to *out; null: no more.
  void digest_logits(std::uint64_t* out);
  /// Rows of the draft's query block after a step of this many requests; 0 where none is drafted.
  std::int64_t draft_rows(std::int64_t requests) const;

  /// Query length up to which the attention counts a request as decode: 1, 1+N (mtp), 1+2N
  /// (dspark).
  std::int64_t decode_threshold() const;

  /// Dummy steps that together reach every host-side branch of the forward that real steps of this
  /// configuration can reach: decode of few and of many rows, prefill of each kind at short and at
  /// long context, chunks of several requests, windows of 128 that end or do not, scoring or the
  /// short-context shortcut. Needs no blocks.
  std::vector<Batch> covering_batches() const;

  /// Bytes, FLOPs and launches of all ops so far.
  const Cost& cost() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace warmgate::engine
