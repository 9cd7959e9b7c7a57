// How many raw keys the prefill of each request gathers: its own tokens and the part of the window
// that lies before them. One block; block threads stride over requests.
// Modelled on vLLM at d40c3e3c00, v1/attention/backends/mla/sparse_swa.py.
//
// gather_lens       [num_prefills] out
// query_start_loc   [num_decodes + num_prefills + 1], decodes first
// seq_lens          [num_decodes + num_prefills]
WG_CONSTANTS(int BLOCK_SIZE)
WG_KERNEL ComputePrefillMetadata(WG_INTS_OUT gather_lens, WG_INTS_IN query_start_loc,
                                 WG_INTS_IN seq_lens, Int num_prefills, Int num_decodes,
                                 Int window) {
  for (Int lane = WG_THREAD; lane < BLOCK_SIZE; lane += WG_THREADS) {
    if (lane >= num_prefills) return;
    const Int request = num_decodes + lane;
    const Int query_len = query_start_loc[request + 1] - query_start_loc[request];
    const Int prefix_len = seq_lens[request] - query_len;
    gather_lens[lane] = query_len + wg_min(prefix_len, window - 1);
  }
}
