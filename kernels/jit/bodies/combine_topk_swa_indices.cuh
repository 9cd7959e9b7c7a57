// Rows of the gathered workspace that each prefill token attends to: its chosen compressed entries,
// then its window. Grid (requests of the chunk, workers); workers stride over a request's tokens.
// Modelled on vLLM at d40c3e3c00, models/deepseek_v4/common/ops/cache_utils.py.
//
// combined_indices  [tokens, combined_stride] out; entries past combined_lens stay as they were
// combined_lens     [tokens] out
// topk_indices      [tokens, topk_stride]: entries of the token's own request, best first
// query_start_loc   [requests + 1] of the chunk; tokens are counted from its first element
// seq_lens, gather_lens  [requests] of the chunk
// M, N              workspace rows of a request; of those, rows before the window's
WG_CONSTANTS(int COMPRESS_RATIO, int TOP_K, int PADDED_TOP_K, int WINDOW_SIZE, bool TOPK_ALIGNED,
             bool QUERY_START_LOC_ALIGNED, bool SEQ_LENS_ALIGNED, bool GATHER_LENS_ALIGNED)
WG_KERNEL CombineTopkSwaIndices(WG_INTS_OUT combined_indices, Int combined_stride,
                                WG_INTS_OUT combined_lens, WG_INTS_IN topk_indices, Int topk_stride,
                                WG_INTS_IN query_start_loc, WG_INTS_IN seq_lens,
                                WG_INTS_IN gather_lens, Int M, Int N) {
  const Int request = WG_BLOCK_X;
  const Int origin = WG_LOOKUP(QUERY_START_LOC_ALIGNED, query_start_loc, 0);
  const Int first_token = WG_LOOKUP(QUERY_START_LOC_ALIGNED, query_start_loc, request) - origin;
  const Int last_token = WG_LOOKUP(QUERY_START_LOC_ALIGNED, query_start_loc, request + 1) - origin;
  const Int seq_len = WG_LOOKUP(SEQ_LENS_ALIGNED, seq_lens, request);
  const Int gather_len = WG_LOOKUP(GATHER_LENS_ALIGNED, gather_lens, request);
  const Int first_position = seq_len - (last_token - first_token);
  const Int first_row = M * request;
  const Int first_gathered = seq_len - gather_len;  // position of the first raw key gathered

  for (Int token = first_token + WG_BLOCK_Y; token < last_token; token += WG_GRID_Y) {
    const Int position = first_position + token - first_token;
    const Int num_topk = wg_min((position + 1) / COMPRESS_RATIO, TOP_K);
    const Int num_window = wg_min(position + 1, WINDOW_SIZE);
    const Long out = Long(token) * Long(combined_stride);
    WG_INTS_AT row = topk_indices + Long(token) * Long(topk_stride);

    for (Int i = WG_THREAD * 4; i < PADDED_TOP_K; i += WG_THREADS * 4) {
      if (i + 4 <= num_topk) {
        const Int4 entries = WG_LOAD4(TOPK_ALIGNED, row, i);
        combined_indices[out + Long(i)] = entries.x + first_row;
        combined_indices[out + Long(i + 1)] = entries.y + first_row;
        combined_indices[out + Long(i + 2)] = entries.z + first_row;
        combined_indices[out + Long(i + 3)] = entries.w + first_row;
      } else {
        for (Int j = i; j < num_topk; j += 1) combined_indices[out + Long(j)] = row[j] + first_row;
      }
    }
    const Int window_row = first_row + N + (position - num_window + 1 - first_gathered);
    for (Int i = WG_THREAD; i < WINDOW_SIZE; i += WG_THREADS) {
      if (i < num_window) combined_indices[out + Long(num_topk + i)] = window_row + i;
    }
    if (WG_THREAD == 0) combined_lens[token] = num_topk + num_window;
  }
}
