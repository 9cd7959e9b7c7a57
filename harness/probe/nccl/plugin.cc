// libwarmgate_nccl.so: NCCL loads it in a process that was started with NCCL_PROFILER_PLUGIN naming
// it. Five versions of NCCL's profiler interface, each a few lines over one recorder. It asks for
// events of collectives and of point-to-point operations only: nothing is added to a kernel, a
// proxy or a network thread. Every call succeeds, whatever it is given.
#include <pthread.h>

#include <cstdlib>
#include <new>

#include "harness/probe/nccl/profiler_abi.h"
#include "harness/probe/nccl/recorder.h"

namespace warmgate::probe::nccl {
namespace {

struct Plugin {
  Report report{
      Voice{"nccl", "warmgate-nccl", "nccl_probe", {"communicator", "collective", "p2p"}}};
  Recorder recorder{report};
};

// Never destroyed: threads of NCCL may call while other destructors run.
std::atomic<Plugin*> plugin{nullptr};
std::mutex starting;
bool started = false;

// NCCL wants a handle for an event to speak of it again; none of ours has anything to remember
// but whether it was captured.
char plain_event, captured_event;

void at_exit() {
  Plugin* mine = plugin.load();
  if (mine == nullptr || mine->report.off()) return;
  mine->recorder.totals();
  mine->report.close(mine->recorder.own_ns(), mine->recorder.calls());
}

// A child by fork() has the parent's file and no NCCL of its own.
void in_child() {
  if (Plugin* mine = plugin.load()) mine->report.forget();
  plugin.store(nullptr);
}

Plugin* start_once() {
  const std::lock_guard lock(starting);
  if (started) return plugin.load();
  started = true;
  auto* made = new (std::nothrow) Plugin;
  if (made == nullptr) return nullptr;
  if (!made->recorder.open_from_environment()) {
    delete made;
    return nullptr;
  }
  plugin.store(made);
  ::pthread_atfork(nullptr, nullptr, in_child);
  std::atexit(at_exit);
  return made;
}

/// Runs `work` for the communicator that `context` means; never throws.
template <typename Work>
void with(void* context, Work&& work) noexcept {
  Plugin* mine = plugin.load();
  if (mine == nullptr || context == nullptr || mine->report.off()) return;
  try {
    const Recorder::Busy busy(mine->recorder);
    if (Communicator* found = mine->recorder.find(context)) work(mine->recorder, *found);
  } catch (...) {  // no memory: the host has worse troubles than we
  }
}

Status open(int api, void** context, int* mask, const char* name, std::uint64_t hash, int nodes,
            int ranks, int rank) noexcept {
  if (mask != nullptr) *mask = 0;
  if (context == nullptr) return kSuccess;
  *context = nullptr;
  try {
    Plugin* mine = start_once();
    if (mine == nullptr || mine->report.off()) return kSuccess;
    // Groups come unasked, as the parents of what is asked for.
    std::uint64_t wanted = kCollective | kPointToPoint;
    if (api >= 5) wanted |= kCollectiveApi | kPointToPointApi;
    // One mask is in force for all communicators, so it is the same for those that are left out.
    if (mask != nullptr) *mask = static_cast<int>(wanted);
    Communicator* made = mine->recorder.open(api);
    if (made == nullptr) return kSuccess;
    if (api >= 4) mine->recorder.identify(*made, name, hash, rank, ranks, nodes);
    *context = made;
  } catch (...) {
  }
  return kSuccess;
}

// Numbers of v1.
const char* func_of(std::uint8_t number) {
  static constexpr const char* names[] = {"Broadcast", "Reduce",   "AllGather", "ReduceScatter",
                                          "AllReduce", "SendRecv", "Send",      "Recv"};
  return number < std::size(names) ? names[number] : "Unknown";
}
const char* datatype_of(std::uint8_t number) {
  static constexpr const char* names[] = {"ncclInt8",     "Unknown",        "ncclInt32",
                                          "ncclUint32",   "ncclInt64",      "ncclUint64",
                                          "ncclFloat16",  "ncclFloat32",    "ncclFloat64",
                                          "ncclBfloat16", "ncclFloat8e4m3", "ncclFloat8e5m2"};
  return number < std::size(names) ? names[number] : "Unknown";
}
const char* algorithm_of(std::uint8_t number) {
  static constexpr const char* names[] = {
      "TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"};
  return number < std::size(names) ? names[number] : "Unknown";
}
const char* protocol_of(std::uint8_t number) {
  static constexpr const char* names[] = {"LL", "LL128", "SIMPLE"};
  return number < std::size(names) ? names[number] : "Unknown";
}
const char* func_of(const char* name) { return name; }
const char* datatype_of(const char* name) { return name; }
const char* algorithm_of(const char* name) { return name; }
const char* protocol_of(const char* name) { return name; }

template <typename Collective>
Operation operation_of(const Collective& c) {
  Operation out;
  out.kind = bounded(func_of(c.func), 23);
  out.datatype = bounded(datatype_of(c.datatype), 19);
  out.elements = c.count;
  out.root = c.root;
  out.seq = static_cast<std::int64_t>(c.seq & INT64_MAX);
  out.algorithm = bounded(algorithm_of(c.algorithm), 23);
  out.protocol = bounded(protocol_of(c.protocol), 23);
  return out;
}

template <typename PointToPoint>
Transfer transfer_of(const PointToPoint& p) {
  return {bounded(func_of(p.func), 23), bounded(datatype_of(p.datatype), 19), p.count, p.peer};
}

// v1 to v3 say with each event whose it is.
template <typename Descriptor>
Status start_named(void* context, void** event, Descriptor* d) noexcept {
  if (event != nullptr) *event = &plain_event;
  if (d == nullptr) return kSuccess;
  with(context, [&](Recorder& recorder, Communicator& c) {
    if (d->type == kCollective) {
      recorder.identify(c, d->collective.communicator, d->collective.hash, d->rank, -1, -1);
      recorder.enter(c, operation_of(d->collective));
    } else if (d->type == kPointToPoint) {
      recorder.identify(c, d->p2p.communicator, d->p2p.hash, d->rank, -1, -1);
      recorder.transfer(c, transfer_of(d->p2p));
    }
  });
  return kSuccess;
}

Status start_v4(void* context, void** event, DescriptorV4* d) noexcept {
  if (event != nullptr) *event = &plain_event;
  if (d == nullptr) return kSuccess;
  with(context, [&](Recorder& recorder, Communicator& c) {
    if (d->type == kCollective) recorder.enter(c, operation_of(d->collective));
    if (d->type == kPointToPoint) recorder.transfer(c, transfer_of(d->p2p));
  });
  return kSuccess;
}

Status start_v5(void* context, void** event, DescriptorV5* d) noexcept {
  if (event != nullptr) *event = &plain_event;
  if (d == nullptr) return kSuccess;
  with(context, [&](Recorder& recorder, Communicator& c) {
    if (d->type == kCollectiveApi) {
      const CollectiveApiV5& call = d->collective_api;
      Operation operation;
      operation.kind = bounded(call.func, 23);
      operation.datatype = bounded(call.datatype, 19);
      operation.elements = call.count;
      operation.root = call.root;
      operation.captured = call.graph_captured;
      if (call.graph_captured && event != nullptr) *event = &captured_event;
      recorder.enter(c, operation);
    } else if (d->type == kCollective && d->parent != &captured_event) {
      recorder.launch(c);  // a replay of a captured one was entered once, when it was captured
    } else if (d->type == kPointToPointApi) {
      if (!d->p2p_api.graph_captured) {
        recorder.call_transfer(c);
      } else if (event != nullptr) {
        *event = &captured_event;
      }
    } else if (d->type == kPointToPoint && d->parent != &captured_event) {
      recorder.transfer(c, transfer_of(d->p2p));
    }
  });
  return kSuccess;
}

Status stop(void*) noexcept { return kSuccess; }
Status record(void*, int, void*) noexcept { return kSuccess; }
Status finalize(void* context) noexcept {
  with(context, [](Recorder& recorder, Communicator& c) { recorder.close(c); });
  return kSuccess;
}

template <int Api>
Status init_unnamed(void** context, int* mask) noexcept {
  return open(Api, context, mask, nullptr, 0, -1, -1, -1);
}
Status init_v4(void** context, int* mask, const char* name, std::uint64_t hash, int nodes,
               int ranks, int rank, void*) noexcept {
  return open(4, context, mask, name, hash, nodes, ranks, rank);
}
Status init_v5(void** context, std::uint64_t hash, int* mask, const char* name, int nodes,
               int ranks, int rank, void*) noexcept {
  return open(5, context, mask, name, hash, nodes, ranks, rank);
}

constexpr const char* kName = "warmgate";

}  // namespace
}  // namespace warmgate::probe::nccl

namespace nccl_tables = warmgate::probe::nccl;

// What NCCL looks up by name; everything else of the library is hidden.
#pragma GCC visibility push(default)
extern "C" {
nccl_tables::TableV1 ncclProfiler_v1 = {nccl_tables::kName,
                                        nccl_tables::init_unnamed<1>,
                                        nccl_tables::start_named<nccl_tables::DescriptorV1>,
                                        nccl_tables::stop,
                                        nccl_tables::record,
                                        nccl_tables::finalize};
nccl_tables::TableV2 ncclProfiler_v2 = {nccl_tables::kName,
                                        nccl_tables::init_unnamed<2>,
                                        nccl_tables::start_named<nccl_tables::DescriptorV2>,
                                        nccl_tables::stop,
                                        nccl_tables::record,
                                        nccl_tables::finalize};
nccl_tables::TableV3 ncclProfiler_v3 = {nccl_tables::kName,
                                        nccl_tables::init_unnamed<3>,
                                        nccl_tables::start_named<nccl_tables::DescriptorV3>,
                                        nccl_tables::stop,
                                        nccl_tables::record,
                                        nccl_tables::finalize};
nccl_tables::TableV4 ncclProfiler_v4 = {nccl_tables::kName,    nccl_tables::init_v4,
                                        nccl_tables::start_v4, nccl_tables::stop,
                                        nccl_tables::record,   nccl_tables::finalize};
nccl_tables::TableV5 ncclProfiler_v5 = {nccl_tables::kName,    nccl_tables::init_v5,
                                        nccl_tables::start_v5, nccl_tables::stop,
                                        nccl_tables::record,   nccl_tables::finalize};
}
#pragma GCC visibility pop
