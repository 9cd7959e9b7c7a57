#include "harness/trace/vocabulary.h"

#include <algorithm>

namespace warmgate::trace {

const std::vector<EventKind>& event_kinds() {
  using enum FieldType;
  static const std::vector<EventKind> kinds = {
      {"hello",
       {{"schema", kString}, {"engine", kString}, {"pid", kNumber}, {"emits", kArray}},
       "a process speaks for the first time"},
      {"bye", {}, "a proper end"},
      {"setup_error",
       {{"message", kString}},
       "the machine or the harness is at fault, not the engine"},
      {"phase_begin", {{"phase", kString}}, "a phase begins"},
      {"phase_end", {{"phase", kString}, {"status", kString}}, "a phase ends; status ok or failed"},
      {"heartbeat", {}, "still alive"},
      {"layer",
       {{"layer", kNumber},
        {"kind", kString},
        {"ratio", kNumber},
        {"role", kString},
        {"owns", kArray}},
       "a layer exists and owns these buffers, caches and sub-modules"},
      {"requires",
       {{"layer", kNumber}, {"resource", kString}},
       "code asked a layer for a resource"},
      {"alloc",
       {{"pool", kString}, {"bytes", kNumber}, {"owner", kString}, {"lifetime", kString}},
       "memory was taken"},
      {"free",
       {{"pool", kString}, {"bytes", kNumber}, {"owner", kString}},
       "memory was given back"},
      {"workspace",
       {{"requested", kNumber}, {"capacity", kNumber}, {"grew", kBool}, {"locked", kBool}},
       "a request to the shared workspace; bytes after rounding"},
      {"compile",
       {{"kernel", kString},
        {"key", kString},
        {"arch", kString},
        {"source", kString},
        {"status", kString}},
       "a specialisation was made ready; source memory, disk or compiler"},
      {"module",
       {{"bytes", kNumber}},
       "code was loaded on a device; origin library (built before), file or memory (compiled or "
       "read by the process), in_capture own or other"},
      {"load",
       {{"origin", kString}, {"ms", kNumber}},
       "a call that brought code to a device, seen in the driver"},
      {"context", {{"context", kString}}, "a context was made on a device"},
      {"graph", {{"graph", kString}, {"status", kString}}, "a graph was instantiated, or is gone"},
      {"sync", {{"call", kString}}, "the host waited for a device while a stream was captured"},
      {"first_launch", {{"kernel", kString}}, "a kernel ran for the first time in this process"},
      {"probe", {{"status", kString}}, "the probe of a process: attached or not, and why not"},
      {"span",
       {{"name", kString}, {"ms", kNumber}},
       "a stretch of work as the engine's own tracing (OpenTelemetry) tells it, at its beginning; "
       "phase where its name stands for one, exceptions that were recorded in it"},
      {"launch",
       {{"kernel", kString}, {"key", kString}},
       "a kernel was launched, once per distinct signature"},
      {"step",
       {{"id", kNumber}, {"kind", kString}, {"rows", kNumber}, {"requests", kNumber}},
       "one forward step"},
      {"capture", {{"graph", kString}}, "a graph was captured"},
      {"replay", {{"graph", kString}}, "a graph was replayed"},
      {"collective",
       {{"communicator", kString}, {"kind", kString}, {"bytes", kNumber}, {"seq", kNumber}},
       "a collective was entered"},
      {"communicator",
       {{"communicator", kString}, {"member", kNumber}},
       "a rank joined a communicator (status made) or left it (gone)"},
      {"communicator_state",
       {{"communicator", kString}, {"member", kNumber}, {"entered", kNumber}},
       "how many collectives a member had entered, with a digest of them; last: the newest one"},
      {"p2p",
       {{"communicator", kString}, {"kind", kString}, {"peer", kNumber}},
       "a Send or a Recv was launched"},
      {"kv",
       {{"bytes", kNumber}, {"blocks", kNumber}, {"tokens", kNumber}, {"concurrency", kNumber}},
       "the KV cache was sized"},
      {"state",
       {{"at", kString}, {"keeps", kArray}},
       "the engine's own state at a point; fields named in keeps are to be as in the first of "
       "them"},
      {"limits",
       {{"max_num_batched_tokens", kNumber}, {"max_num_seqs", kNumber}, {"max_model_len", kNumber}},
       "what every batch of this rank has to obey"},
      {"poisoned",
       {{"what", kString}, {"value", kString}, {"status", kString}},
       "a dummy step with poisoned contents; status begin, then end with the same probe's result "
       "before and after"},
      {"ready", {{"clock", kString}}, "one of the readiness clocks struck"},
      {"request", {{"id", kAny}, {"ok", kBool}}, "a request ended"},
      {"counter", {{"name", kString}, {"value", kNumber}}, "a figure"},
      {"http", {{"path", kString}}, "an endpoint was asked from outside: status, ms, end"},
      {"store",
       {{"store", kString}, {"path", kString}},
       "the state of a cache store before the start, or (status outside) files that appeared at "
       "its "
       "default place although it was told to be elsewhere"},
      {"op_time",
       {{"kernel", kString}, {"calls", kNumber}, {"ns", kNumber}, {"bytes", kNumber}},
       "wall time of a kernel's calls in a phase, where it was asked for"},
      {"skip", {{"step", kString}, {"reason", kString}}, "a requested step was not executed"},
      {"check", {{"tensor", kString}}, "a numeric or integer check was made"},
      {"asked",
       {{"kernel", kString}, {"keys", kArray}},
       "the keys that warmup will ask for, told before the first is compiled"},
      {"domain",
       {{"kernel", kString}, {"keys", kArray}},
       "every key the dispatcher can produce for this kernel"},
      {"stage",
       {{"stage", kString}, {"status", kString}},
       "a warmup stage was requested, done or failed"},
      {"fault", {{"type", kString}, {"message", kString}}, "something broke"},
      {"helper_fault",
       {{"type", kString}, {"message", kString}},
       "an exception ended a small program that the engine asked something; often the answer"},
      // Sent by the harness about what it saw from outside.
      {"process_end", {{"pid", kNumber}}, "a worker ended: exit_code or signal, peak_rss_bytes"},
      {"leftover", {{"what", kString}}, "a process, port or file was left behind"},
      {"gpu_memory",
       {{"path", kString}, {"before", kNumber}, {"after", kNumber}},
       "a GPU's memory came back after the run: bytes in use before it and after it"},
      {"deadline",
       {{"phase", kString}, {"kind", kString}},
       "the harness ended a run: deadline or silence"},
      {"hang",
       {{"pid", kNumber}},
       "what a process did when its run was given up on: state, call of the driver, kernels, "
       "frames"},
      {"stack",
       {{"pid", kNumber}, {"how", kString}, {"frames", kArray}},
       "a thread of it; how proc, probe, faulthandler or py-spy"},
      {"stop", {}, "the scenario's stop command was run: exit_code, signal or error"},
      {"reading",
       {{"engine", kString}, {"outcome", kString}},
       "what the whole log of a server says, once it has ended"},
  };
  return kinds;
}

const EventKind* find_kind(std::string_view ev) {
  const auto& all = event_kinds();
  const auto it =
      std::find_if(all.begin(), all.end(), [&](const EventKind& k) { return k.ev == ev; });
  return it == all.end() ? nullptr : &*it;
}

const std::vector<std::string_view>& phases() {
  static const std::vector<std::string_view> names = {
      "bootstrap", "load", "profile", "kv", "warmup", "capture", "ready", "serve", "shutdown"};
  return names;
}

const std::vector<FigureRule>& figures() {
  using enum Direction;
  static const std::vector<FigureRule> rules = {
      {"kv_tokens", "tokens", kHigher,
       "capacity as the engine prints it: concurrency times max_model_len"},
      {"kv_blocks", "blocks", kHigher, "blocks of the KV slab"},
      {"kv_bytes", "bytes", kHigher, "bytes of the KV slab"},
      {"concurrency", "requests", kHigher, "full-length requests that fit at once"},
      {"blocks_per_request", "blocks", kLower, "blocks that one full-length request takes"},
      {"block_stride_bytes", "bytes", kLower, "bytes of one block over all groups"},
      {"weights_bytes", "bytes", kLower, "target weights of one rank"},
      {"draft_weights_bytes", "bytes", kLower, "draft weights of one rank"},
      {"workspace_bytes", "bytes", kLower, "shared workspace at the end of warmup"},
      {"profile_peak_bytes", "bytes", kLower, "peak device memory of profiling"},
      {"serve_peak_bytes", "bytes", kLower, "peak device memory of serving"},
      {"capture_bytes", "bytes", kLower, "memory held by captured graphs"},
      {"time_to_ready_s", "s", kLower, "spawn to ready, slowest rank"},
      {"time_to_port_s", "s", kLower, "spawn to a port that accepts connections"},
      {"time_to_health_s", "s", kLower, "spawn to a health endpoint that says ready"},
      {"time_to_models_s", "s", kLower, "spawn to a list of what is served"},
      {"time_to_first_token_s", "s", kLower, "spawn to the first token of the first request"},
      {"time_to_capture_s", "s", kLower, "spawn to the end of the last capture, by the log"},
      {"time_to_steady_s", "s", kLower, "spawn to a request that is as fast as the next"},
      {"bootstrap_s", "s", kLower, "time in bootstrap"},
      {"load_s", "s", kLower, "time in load"},
      {"profile_s", "s", kLower, "time in profile"},
      {"kv_s", "s", kLower, "time in kv"},
      {"warmup_s", "s", kLower, "time in warmup"},
      {"serve_s", "s", kLower, "time in serve"},
      {"keys_asked", "keys", kNone, "compile keys that warmup asked for"},
      {"keys_warmed", "keys", kNone, "compile keys that warmup compiled"},
      {"keys_invalid", "keys", kLower,
       "keys of warmup that are broken on the host or an architecture"},
      {"keys_launched", "keys", kNone, "distinct keys launched in serve"},
      {"compiles_after_ready", "compiles", kLower, "keys compiled after ready"},
      {"steps_served", "steps", kNone, "forward steps in serve"},
      {"requests_ok", "requests", kHigher, "requests that ended as they should"},
      {"output_tokens", "tokens", kHigher, "tokens that serve produced"},
      {"preemptions", "requests", kLower, "requests that lost their blocks to older ones in serve"},
      {"requests_failed", "requests", kLower, "requests that did not end as they should"},
      {"probe_own_ms", "ms", kLower, "time that the probe of a process took itself"},
      {"probe_calls", "calls", kLower, "callbacks that the probe was in"},
      {"probe_lines_dropped", "lines", kLower, "what the probe left out of its events"},
      {"nccl_probe_own_ms", "ms", kLower, "time that the NCCL plugin of a process took itself"},
      {"nccl_probe_calls", "calls", kLower, "calls of NCCL that its plugin answered"},
      {"nccl_probe_lines_dropped", "lines", kLower, "what the NCCL plugin left out of its events"},
      {"nccl_communicators_left_out", "communicators", kLower,
       "communicators that were too many to be watched"},
      {"python_own_ms", "ms", kLower, "time that the Python plugin took itself in its hooks"},
      {"python_lines_dropped", "lines", kLower, "what the Python plugin left out of its events"},
      {"torch_allocated_peak_bytes", "bytes", kLower,
       "most that torch's allocator had given out, since the engine last reset it"},
      {"torch_reserved_peak_bytes", "bytes", kLower,
       "most that torch's allocator had taken from the device, since the engine last reset it"},
      {"torch_reserved_bytes", "bytes", kLower, "what torch's allocator holds of the device"},
      {"torch_alloc_retries", "allocations", kLower,
       "allocations that torch had to free its cache for"},
      {"probe_small_allocs", "allocations", kLower,
       "allocations too small for events of their own"},
      {"ttft_first_ms", "ms", kLower, "first request after ready: sent to first token"},
      {"ttft_second_ms", "ms", kLower, "second request: sent to first token"},
      {"ttft_third_ms", "ms", kLower, "third request: sent to first token"},
      {"ttft_ms", "ms", kLower, "sent to first token, median over the requests from the third on"},
      {"inter_token_ms", "ms", kLower, "between streamed tokens, median of the requests' medians"},
      {"inter_token_p99_ms", "ms", kLower, "between streamed tokens, largest of the requests' p99"},
      {"request_ms", "ms", kLower, "a whole request, median over the requests from the third on"},
      {"served_prompt_tokens", "tokens", kNone, "prompt tokens as the server counted them"},
      {"served_output_tokens", "tokens", kNone, "generated tokens as the server counted them"},
      {"prefix_cache_hits", "tokens", kNone, "prompt tokens that the server did not compute again"},
      {"drafts", "drafts", kHigher, "drafts that the server made"},
      {"draft_tokens", "tokens", kNone, "tokens in those drafts"},
      {"accepted_tokens", "tokens", kHigher, "draft tokens that the target accepted"},
      {"peak_rss_bytes", "bytes", kLower, "peak resident host memory, largest worker"},
      {"numerics_error", "of the reference's norm", kLower,
       "largest row error against an independent computation"},
      {"numerics_checks", "checks", kNone, "comparisons with an independent computation"},
      {"skips", "steps", kLower, "warmup steps that were requested and not executed"},
  };
  return rules;
}

const FigureRule* find_figure(std::string_view name) {
  const auto& all = figures();
  const auto it =
      std::find_if(all.begin(), all.end(), [&](const FigureRule& f) { return f.name == name; });
  return it == all.end() ? nullptr : &*it;
}

}  // namespace warmgate::trace
