#include "harness/scenario/seams.h"

#include <algorithm>

namespace warmgate::scenario {

const std::vector<SeamRule>& seams() {
  static const std::vector<SeamRule> table = {
      {"profile.topk_bound",
       {"kind_aware", "buffer_required"},
       "how the metadata-less forward finds the top-k width to reserve for: by layer kind, or by "
       "requiring topk_indices_buffer before the kind is looked at",
       "vllm-project/vllm#50298 (2026-07-30) brought buffer_required, #50693 (2026-08-10) "
       "kind_aware; "
       "vllm/models/deepseek_v4/nvidia/flashmla.py forward_mqa"},
      {"prefill.topk_bound",
       {"kind_aware", "buffer_required"},
       "the same choice in the real prefill branch of window-only layers",
       "still buffer_required after vllm-project/vllm#50693; nvidia/flashmla.py _forward_prefill"},
      {"profile.draft_batch",
       {"clamped", "unclamped"},
       "draft query tokens of profiling: bounded by the input buffers (B rows), or min(B,S)*N",
       "vllm-project/vllm#56448; v1/worker/gpu/spec_decode/dflash/speculator.py"},
      {"workspace.reservation",
       {"index_width", "topk_buffer_width", "none"},
       "width that profiling reserves combined indices for: each kind's own index width, or the "
       "top-k buffer's width for every compressed kind (too small for C128A at long context), or "
       "no "
       "reservation at all, neither for attention nor for the indexer",
       "vLLM at d40c3e3c00, nvidia/flashmla.py forward_mqa; an early release reserved nothing: "
       "vllm-project/vllm#41700"},
      {"workspace.lock",
       {"after_warmup", "never"},
       "whether the shared workspace refuses to grow once warmup is done",
       "vLLM at d40c3e3c00: only the V1 runner locks, at the end of capture; "
       "v1/worker/workspace.py"},
      {"warmup.on_error",
       {"raise", "swallow"},
       "a failed compile in the metadata-kernel warmup ends start-up, or is logged as a skip "
       "together "
       "with every kernel after it",
       "vllm/model_executor/warmup/sparse_mla_triton_warmup.py: one try/except around three "
       "compiles"},
      {"warmup.chunk_ratios",
       {"indexer_caches", "config_clamped", "config_raw"},
       "which compress ratios BuildPrefillChunkMetadata is warmed for: those of existing indexer "
       "caches, max(1,r) of the config list, or the raw list with its zeros",
       "vllm-project/vllm#47451 (2026-07-20) config_raw, #49392 (2026-07-27) config_clamped"},
      {"warmup.chunk_starts",
       {"all_classes", "zero_and_one"},
       "integer classes warmed for query_slice_start of BuildPrefillChunkMetadata",
       "vLLM at d40c3e3c00, v1/attention/backends/mla/indexer.py get_warmup_keys"},
      {"warmup.combine_rows",
       {"from_model", "fixed"},
       "(ratio, top-k, padded width) rows warmed for CombineTopkSwaIndices: those the model can "
       "produce, or four fixed ones",
       "vLLM at d40c3e3c00, models/deepseek_v4/common/ops/cache_utils.py get_warmup_keys"},
      {"warmup.combine_alignments",
       {"reachable", "fixed"},
       "pointer alignments warmed for CombineTopkSwaIndices: those that slicing can produce, or "
       "TTTT TFFT FFFF",
       "vLLM at d40c3e3c00, same place; chunk starts off a multiple of 4 since "
       "vllm-project/vllm#45061"},
      {"warmup.prefill_reach",
       {"covering", "short_steps"},
       "whether warmup steps reach the prefill branch and the indexer's scoring at serving "
       "lengths, "
       "or only run the short steps of the modelled engine",
       "vLLM at d40c3e3c00, v1/worker/gpu/warmup.py and model_executor/warmup/kernel_warmup.py"},
      {"profile.indexer_logits",
       {"reserved", "absent"},
       "whether profiling takes the indexer's largest logits, or leaves out what grows with the "
       "context",
       "vllm-project/vllm#45663 and sgl-project/sglang#35201: serving ran out of memory; vLLM at "
       "d40c3e3c00, model_executor/layers/sparse_attn_indexer.py reserves"},
      {"profile.tokens",
       {"servable", "all_batched"},
       "tokens that profiling runs: no more than all requests at full length, or "
       "max_num_batched_tokens whatever they can be",
       "vLLM at d40c3e3c00, v1/worker/gpu/model_runner.py profile_run; for what a bound by batched "
       "tokens costs see vllm-project/vllm#55132"},
      {"kv.sizing",
       {"counts_what_follows", "profile_only"},
       "whether the KV pool leaves room for what is made after it was sized (tables, slot "
       "mappings, metadata), or takes all that profiling left",
       "vLLM at d40c3e3c00, v1/worker/gpu_worker.py determine_available_memory; the builders are "
       "made in v1/worker/gpu/model_runner.py initialize_kv_cache"},
      {"warmup.row_classes",
       {"every_class", "round_counts"},
       "whether covering steps also have counts and alignments of every class that kernels "
       "specialise on, or mostly round ones",
       "vllm-project/vllm#43009: ==1 and %16 specialisations that the dummy run does not "
       "enumerate; #47807: powers of two only"},
      {"warmup.autotune_batch",
       {"even", "uniform_uncapped"},
       "the batch of the autotune step: tokens spread over at most max_num_seqs requests, or as "
       "many equal decodes as the tokens give",
       "vllm-project/vllm#25494 (2025-09-23): a dummy batch of more requests than allowed"},
      {"warmup.scratch_blocks",
       {"returned", "kept"},
       "whether requests of warmup steps give their KV blocks back",
       "NVIDIA/TensorRT-LLM#17162 (blocks of dummy requests leak), #16466 (lengths drift through "
       "warmup)"},
      {"warmup.dummy_slots",
       {"skipped", "null_block"},
       "where tokens of dummy steps are stored: nowhere (slot -1), or in the null block, whose "
       "slots an array of zeros names",
       "vllm-project/vllm#39444 (2026-04-09), introduced by #25954"},
      {"warmup.dummy_inputs",
       {"filled", "as_found"},
       "whether a dummy step fills its ids and positions, or uses what is in their buffers",
       "NVIDIA/TensorRT-LLM#5947 (2025-07-11): offsets of the iteration before; vLLM at "
       "d40c3e3c00, v1/worker/gpu/input_batch.py make_dummy fills"},
      {"capture.c128_branch",
       {"every_step", "recorded"},
       "whether each step decides by itself that none of its tokens ends a window of 128, or the "
       "decision of a captured dummy step holds for all",
       "vllm-project/vllm#48957 (2026-07-22) brought the host's flag, #51430 froze it into graphs, "
       "#51768 and #52401 (2026-08-15) answered"},
      {"capture.graphs",
       {"full", "piecewise", "none"},
       "where the device has graphs: decode steps are replayed whole, or in pieces between which "
       "attention runs eagerly, or not captured",
       "vLLM at d40c3e3c00, v1/worker/gpu/cudagraph_utils.py: FULL_AND_PIECEWISE by default, "
       "enforce_eager captures nothing"},
      {"capture.indexer_branch",
       {"scores", "recorded"},
       "whether a captured graph of short dummy lengths holds the indexer's scoring, or the "
       "shortcut "
       "that such lengths take",
       "vllm-project/vllm#49486 (2026-07-23) brought the shortcut, #51430 froze it into piecewise "
       "graphs, #52492 (2026-08-16) answered"},
      {"attention.topk_length",
       {"honoured", "ignored"},
       "whether prefill attention stops at each row's length, or reads the tail of combined "
       "indices that nobody wrote",
       "vllm-project/vllm#50298 (2026-07-30): outputs of the caller, not initialised behind the "
       "length; nvidia/flashmla.py _forward_prefill"},
      {"attention.window_padding",
       {"excluded", "counted"},
       "whether the padded width of a window is its length in decode attention",
       "vllm-project/vllm#57432 (2026-09-17): 133 keys padded to 256 gave 133/256 of the result"},
      {"c128a.width",
       {"full_stride", "packed"},
       "row width of the C128A index tensor: full stride, or the next power of two of the batch's "
       "need",
       "vllm-project/vllm#50004 (2026-07-27) packed, #51318 (2026-08-15) full_stride"},
      {"rope.window_layers",
       {"yarn", "plain"},
       "whether window-only layers rotate with YaRN's interpolated frequencies, as all layers do, "
       "or "
       "with plain ones",
       "vLLM at d40c3e3c00: model_executor/layers/rotary_embedding keeps the deepseek_yarn type, "
       "with "
       "theta 10000, for layers without compression; DeepSeek's inference/model.py switches "
       "interpolation off for them"},
      {"jit.compiler",
       {"strict", "lenient"},
       "whether the run-time compiler treats a constant division by zero as an error",
       "measured: Triton 3.6 and NVRTC 13.0 accept it by default; vllm-project/vllm#49392 was "
       "found "
       "by a compiler that does not"},
      {"jit.cache",
       {"locked", "unlocked", "per_start"},
       "the cache of compiled keys that processes and starts share: one builds an entry while the "
       "others wait, or nobody waits, or an entry's address holds what only this start has",
       "unlocked: deepseek-ai/DeepGEMM#301 (2026-04-11); per_start: starts that compile again what "
       "a mounted cache holds, sgl-project/sglang#29170 (2026-06-24)"},
  };
  return table;
}

const SeamRule* find_seam(std::string_view name) {
  const auto& all = seams();
  const auto it =
      std::find_if(all.begin(), all.end(), [&](const SeamRule& s) { return s.name == name; });
  return it == all.end() ? nullptr : &*it;
}

}  // namespace warmgate::scenario
