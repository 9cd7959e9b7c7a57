#include "harness/probe/observer.h"

#include <cstdio>

#include "harness/probe/cubin.h"
#include "harness/probe/mapped.h"

namespace warmgate::probe {
namespace {

// What this thread is in the middle of: modules arrive during calls.
struct Loading {
  Call call = Call::kNone;
  const void* image = nullptr;
  std::int64_t began_ns = 0;
};
thread_local Loading loading;

std::string handle(std::uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

double ms(std::int64_t ns) { return static_cast<double>(ns) / 1e6; }

// The value that a call wrote through its first argument.
std::uint64_t written(const void* params) {
  const auto* at = reinterpret_cast<const std::uint64_t*>(word(params, 0));
  return at == nullptr ? 0 : *at;
}

bool is_load(Call call) { return call == Call::kLoadImage || call == Call::kLoadFile; }

}  // namespace

// Sums what the probe itself took; a callback inside a callback is not summed twice, because the
// driver does not call back while it is in one.
class Observer::Timed {
 public:
  explicit Timed(Observer& observer) : observer_(observer), begin_(trace::now_ns()) {}
  ~Timed() {
    observer_.own_ns_.fetch_add(trace::now_ns() - begin_, std::memory_order_relaxed);
    observer_.calls_.fetch_add(1, std::memory_order_relaxed);
  }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;
  std::int64_t begin() const { return begin_; }

 private:
  Observer& observer_;
  std::int64_t begin_;
};

void Observer::name(std::uint32_t id, Call call) {
  if (id < kMostIds) calls_of_[id] = call;
}

void Observer::on_driver(std::uint32_t id, const cupti::CallbackData& data) {
  if (id >= kMostIds || report_.off()) return;
  const Call call = calls_of_[id];
  if (call == Call::kNone) return;
  // A launch is every few microseconds: nothing but the table is looked at.
  if (call == Call::kLaunch || call == Call::kLaunchEx) {
    if (data.site != cupti::kEnter) return;
    const bool plain = call == Call::kLaunch;
    const std::uint64_t function = word(data.params, plain ? 0 : 1);
    if (options_.launches) launched(function, data.symbol);
    if (!captures_.any() || options_.parameters.empty()) return;
    const Timed timed(*this);
    const Capture capture = captures_.around(thread_id());
    if (capture.number == 0) return;
    launched_into(capture.number, reinterpret_cast<const void*>(function),
                  reinterpret_cast<void**>(word(data.params, plain ? 6 : 2)));
    return;
  }
  const Timed timed(*this);
  if (data.site == cupti::kEnter) {
    if (options_.call_table != nullptr) options_.call_table->enter(data.function, timed.begin());
    if (data.correlation_data != nullptr)
      *data.correlation_data = static_cast<std::uint64_t>(timed.begin());
    enter(call, data);
  } else {
    const std::int64_t began = data.correlation_data != nullptr
                                   ? static_cast<std::int64_t>(*data.correlation_data)
                                   : timed.begin();
    leave(call, data, began);
    if (options_.call_table != nullptr) options_.call_table->leave();
    maybe_detach(timed.begin());
  }
}

void Observer::maybe_detach(std::int64_t now_ns) {
  if (options_.detach_after_ns < 0 || !options_.detach || !is_ready()) return;
  std::int64_t since = 0;
  ready_seen_ns_.compare_exchange_strong(since, now_ns);
  if (since == 0 || now_ns - since < options_.detach_after_ns || captures_.any()) return;
  if (detached_.exchange(true)) return;
  report_.send("probe", Report::line("probe")
                            .str("status", "detached")
                            .str("reason", "as long after ready as was asked for"));
  options_.detach();
}

void Observer::enter(Call call, const cupti::CallbackData& data) {
  if (is_load(call)) {
    loading = {call, reinterpret_cast<const void*>(word(data.params, 1)), trace::now_ns()};
  } else if (call == Call::kFree || call == Call::kFreeAsync || call == Call::kRelease) {
    // On the way in: afterwards the address may already be somebody else's.
    freed(call == Call::kFree        ? "device"
          : call == Call::kFreeAsync ? "async"
                                     : "physical",
          word(data.params, 0));
  } else if (call == Call::kExecDestroy) {
    const std::uint64_t exec = word(data.params, 0);
    {
      const std::lock_guard lock(mutex_);
      graph_memory_.destroyed(exec);
      if (replayed_.erase(exec) == 0) return;
    }
    report_.send("graph", Report::line("graph").str("graph", handle(exec)).str("status", "gone"));
  } else if (call == Call::kSynchronise && captures_.any()) {
    if (captures_.around(thread_id()).number == 0) return;
    trace::Line line = Report::line("sync");
    mark(line.str("call", data.function == nullptr ? "" : data.function));
    report_.send("sync", line);
  } else if (call == Call::kReplay) {
    const std::uint64_t exec = word(data.params, 0);
    {
      const std::lock_guard lock(mutex_);
      const auto it = replayed_.find(exec);
      if (it != replayed_.end() && it->second) return;
      replayed_[exec] = true;
    }
    report_.send("replay", Report::line("replay").str("graph", handle(exec)).num("count", 1));
  }
}

void Observer::leave(Call call, const cupti::CallbackData& data, std::int64_t began_ns) {
  const int result = data.result == nullptr ? 0 : *static_cast<const int*>(data.result);
  const std::int64_t now = trace::now_ns();
  const auto bytes = static_cast<std::int64_t>(word(data.params, 1));
  switch (call) {
    case Call::kLoadImage:
    case Call::kLoadFile:
      loaded(call, reinterpret_cast<const void*>(word(data.params, 1)), now - began_ns, result);
      loading = {};
      break;
    case Call::kAlloc:
      if (result == 0) allocated("device", written(data.params), bytes, now - began_ns);
      break;
    case Call::kAllocAsync:
      if (result == 0) allocated("async", written(data.params), bytes, now - began_ns);
      break;
    case Call::kCreate:
      if (result == 0) allocated("physical", written(data.params), bytes, now - began_ns);
      break;
    case Call::kBeginCapture:
      if (result == 0) {
        const bool were_any = captures_.any();
        captures_.begin(word(data.params, 0), thread_id(),
                        static_cast<CaptureMode>(static_cast<int>(word(data.params, 1))), now);
        captures_changed(were_any);
      }
      break;
    case Call::kEndCapture: {
      const bool were_any = captures_.any();
      const Capture capture = captures_.end(word(data.params, 0));
      captures_changed(were_any);
      if (capture.number == 0) break;
      const auto* out = reinterpret_cast<const std::uint64_t*>(word(data.params, 1));
      const std::uint64_t graph = result == 0 && out != nullptr ? *out : 0;
      if (graph != 0) {
        const std::lock_guard lock(mutex_);
        capture_of_graph_[graph] = capture.number;
      }
      report_.send("capture", Report::line("capture")
                                  .str("graph", handle(graph))
                                  .num("capture", static_cast<std::int64_t>(capture.number))
                                  .str("stream", handle(capture.stream))
                                  .num("result", result)
                                  .real("ms", ms(now - capture.begin_ns)));
      break;
    }
    case Call::kInstantiate:
      if (result == 0) instantiated(written(data.params), word(data.params, 1), now - began_ns);
      break;
    default:
      break;
  }
}

void Observer::captures_changed(bool were_any) {
  if (were_any == captures_.any() || options_.launches || !options_.listen_to_launches) return;
  options_.listen_to_launches(!were_any);
}

void Observer::launched_into(std::uint64_t capture, const void* function, void** arguments) {
  const std::lock_guard lock(mutex_);
  graph_memory_.launched(capture, function, arguments, options_.parameters, blocks_);
}

// Says whether a capture goes on around this call, and whose.
void Observer::mark(trace::Line& line) {
  const Capture capture = captures_.around(thread_id());
  if (capture.number == 0) return;
  line.str("in_capture", capture.thread == thread_id() ? "own" : "other")
      .num("capture", static_cast<std::int64_t>(capture.number));
}

void Observer::loaded(Call call, const void* image, std::int64_t took_ns, int result) {
  trace::Line line = Report::line("load");
  if (call == Call::kLoadFile) {
    line.str("origin", "file");
    if (image != nullptr) line.str("file", static_cast<const char*>(image));
  } else {
    const std::string object = object_with(image);
    line.str("origin", object.empty() ? "memory" : "library");
    if (!object.empty()) line.str("file", object);
  }
  mark(line.num("result", result).real("ms", ms(took_ns)));
  report_.send("load", line);
}

void Observer::allocated(std::string_view pool, std::uint64_t key, std::int64_t bytes,
                         std::int64_t took_ns) {
  const bool inside = captures_.any() && captures_.around(thread_id()).number != 0;
  const bool tell = bytes >= options_.alloc_bytes || inside;
  {
    const std::lock_guard lock(mutex_);
    blocks_[key] = {bytes, tell, ++last_block_};
    if (!tell) {
      ++small_;
      small_bytes_ += bytes;
      return;
    }
  }
  trace::Line line = Report::line("alloc");
  mark(line.str("pool", pool)
           .num("bytes", bytes)
           .str("owner", "driver")
           .str("lifetime", "until free")
           .str("address", handle(key))
           .real("ms", ms(took_ns)));
  report_.send("alloc", line);
}

void Observer::freed(std::string_view pool, std::uint64_t key) {
  Block block;
  std::vector<std::string> naming;
  {
    const std::lock_guard lock(mutex_);
    const auto it = blocks_.find(key);
    if (it == blocks_.end()) return;
    block = it->second;
    blocks_.erase(it);
    for (const std::uint64_t exec : graph_memory_.naming(block.id)) naming.push_back(handle(exec));
  }
  if (!block.told && naming.empty() && !captures_.any()) return;
  trace::Line line = Report::line("free");
  mark(line.str("pool", pool)
           .num("bytes", block.bytes)
           .str("owner", "driver")
           .str("address", handle(key)));
  if (!naming.empty()) line.strings("named_by", naming);
  report_.send("free", line);
}

void Observer::instantiated(std::uint64_t exec, std::uint64_t graph, std::int64_t took_ns) {
  std::uint64_t capture = 0;
  GraphMemory::Size size;
  {
    const std::lock_guard lock(mutex_);
    replayed_[exec] = false;
    const auto it = capture_of_graph_.find(graph);
    if (it != capture_of_graph_.end()) {
      capture = it->second;
      graph_memory_.instantiated(capture, exec);
      size = graph_memory_.size_of(capture);
    }
  }
  trace::Line line = Report::line("graph");
  line.str("graph", handle(exec)).str("status", "instantiated").real("ms", ms(took_ns));
  if (capture != 0) line.num("capture", static_cast<std::int64_t>(capture));
  // Launches are listened to in a capture only where arguments can be read.
  if (capture != 0 && !options_.parameters.empty()) {
    line.num("kernels", static_cast<std::int64_t>(size.kernels))
        .num("blocks", static_cast<std::int64_t>(size.blocks));
  }
  report_.send("graph", line);
}

void Observer::launched(std::uint64_t function, const char* symbol) {
  if (function == 0) return;
  // Open addressing over handles; a full table says nothing more.
  const bool ready = is_ready();
  auto& kernels = kernels_[ready ? 1 : 0];
  std::size_t slot = (function >> 4) * 0x9E3779B97F4A7C15ULL >> 50;
  for (std::size_t tries = 0; tries < 64; ++tries, slot = (slot + 1) % kKernels) {
    std::uint64_t seen = kernels[slot].load(std::memory_order_relaxed);
    if (seen == function) return;
    if (seen != 0) continue;
    if (!kernels[slot].compare_exchange_strong(seen, function)) {
      if (seen == function) return;
      continue;
    }
    const Timed timed(*this);
    trace::Line line = Report::line("first_launch");
    mark(line.str("kernel", symbol == nullptr ? "" : symbol).flag("ready", ready));
    report_.send("first_launch", line);
    return;
  }
}

void Observer::on_resource(std::uint32_t id, const cupti::ResourceData& data) {
  if (report_.off()) return;
  const Timed timed(*this);
  if (id == cupti::kContextCreated) {
    report_.send("context", Report::line("context").str(
                                "context", handle(reinterpret_cast<std::uint64_t>(data.context))));
  } else if (id == cupti::kModuleLoaded && data.descriptor != nullptr) {
    const auto& module = *static_cast<const cupti::ModuleData*>(data.descriptor);
    const Cubin cubin = read_cubin(module.cubin, module.bytes);
    // Outside of a load call the driver fetches, at its first use, what was registered before.
    std::string object;
    const bool lazy = loading.call == Call::kNone;
    if (loading.call == Call::kLoadImage) object = object_with(loading.image);
    const char* origin = lazy                              ? "library"
                         : loading.call == Call::kLoadFile ? "file"
                         : object.empty()                  ? "memory"
                                                           : "library";
    trace::Line line = Report::line("module");
    mark(line.num("bytes", static_cast<std::int64_t>(cubin.bytes))
             .str("hash", cubin.hash)
             .num("kernels", static_cast<std::int64_t>(cubin.kernels))
             .strings("names", cubin.names)
             .str("origin", origin)
             .flag("lazy", lazy)
             .num("module", module.id));
    report_.send("module", line);
  }
}

void Observer::totals() {
  if (report_.off()) return;
  std::int64_t bytes = 0;
  std::uint64_t count = 0;
  {
    const std::lock_guard lock(mutex_);
    bytes = small_bytes_;
    count = small_;
  }
  report_.send("counter", Report::line("counter")
                              .str("name", "probe_small_allocs")
                              .real("value", static_cast<double>(count))
                              .num("bytes", bytes));
}

}  // namespace warmgate::probe
