// For one chunk of prefill requests whose compressed keys lie gathered one request after another:
// which of them each query token may score, and whose each key is. One block a request.
// Modelled on vLLM at d40c3e3c00, v1/attention/backends/mla/indexer.py.
//
// key_starts, key_ends    [query_slice_stop - query_slice_start] out; token t scores [start, end)
// key_requests            [keys of the chunk] out: request of the key, counted inside the chunk
// query_start_loc         [requests + 1] of the chunk
// uncompressed_seq_lens   [requests] of the chunk
// query_slice_start/stop  tokens of the chunk that this sub-chunk serves

// Compressed entries of a request's first `tokens` tokens that this rank holds (decode context
// parallelism deals them out in runs of DCP_INTERLEAVE).
WG_CONSTANTS(int DCP_RANK, int DCP_WORLD, int DCP_INTERLEAVE, int COMPRESS_RATIO)
WG_DEVICE Int keys_of_rank(Int tokens) {
  const Int entries = tokens / COMPRESS_RATIO;
  const Int base = entries / DCP_INTERLEAVE / DCP_WORLD * DCP_INTERLEAVE;
  const Int rest = entries - base * DCP_WORLD - DCP_RANK * DCP_INTERLEAVE;
  return base + wg_max(0, wg_min(rest, DCP_INTERLEAVE));
}
#define KEYS_OF keys_of_rank WG_WITH(DCP_RANK, DCP_WORLD, DCP_INTERLEAVE, COMPRESS_RATIO)

WG_CONSTANTS(int QUERY_SLICE_START, int QUERY_SLICE_STOP, int DCP_RANK, int DCP_WORLD,
             int DCP_INTERLEAVE, int BLOCK_SIZE, int COMPRESS_RATIO, bool SEQ_LENS_ALIGNED)
WG_KERNEL BuildPrefillChunkMetadata(WG_INTS_OUT key_starts, WG_INTS_OUT key_ends,
                                    WG_INTS_OUT key_requests, WG_INTS_IN query_start_loc,
                                    WG_INTS_IN uncompressed_seq_lens, Int query_slice_start,
                                    Int query_slice_stop) {
  const Int slice_start = WG_CLASSIFIED(QUERY_SLICE_START, query_slice_start);
  const Int slice_stop = WG_CLASSIFIED(QUERY_SLICE_STOP, query_slice_stop);
  const Int request = WG_BLOCK_X;

  // Keys of the requests before this one.
  Int first_key = 0;
  Int other = 0;
  for (; other + 4 <= request; other += 4) {
    const Int4 lens = WG_LOAD4(SEQ_LENS_ALIGNED, uncompressed_seq_lens, other);
    first_key += KEYS_OF(lens.x) + KEYS_OF(lens.y) + KEYS_OF(lens.z) + KEYS_OF(lens.w);
  }
  for (; other < request; other += 1) first_key += KEYS_OF(uncompressed_seq_lens[other]);

  const Int seq_len = WG_LOOKUP(SEQ_LENS_ALIGNED, uncompressed_seq_lens, request);
  const Int num_keys = KEYS_OF(seq_len);
  for (Int tile = 0; tile < num_keys; tile += BLOCK_SIZE) {
    const Int stop = wg_min(tile + BLOCK_SIZE, num_keys);
    for (Int key = tile + WG_THREAD; key < stop; key += WG_THREADS) {
      key_requests[first_key + key] = request;
    }
  }

  // Tokens of this request that lie in the slice; both counted from the chunk's first token.
  const Int first_token = query_start_loc[request] - query_start_loc[0];
  const Int last_token = query_start_loc[request + 1] - query_start_loc[0];
  const Int first_position = seq_len - (last_token - first_token);
  const Int begin = wg_max(first_token, slice_start);
  const Int end = wg_min(last_token, slice_stop);
  for (Int tile = begin; tile < end; tile += BLOCK_SIZE) {
    const Int stop = wg_min(tile + BLOCK_SIZE, end);
    for (Int token = tile + WG_THREAD; token < stop; token += WG_THREADS) {
      const Int position = first_position + token - first_token;
      key_starts[token - slice_start] = first_key;
      key_ends[token - slice_start] = first_key + KEYS_OF(position + 1);
    }
  }
}
#undef KEYS_OF
