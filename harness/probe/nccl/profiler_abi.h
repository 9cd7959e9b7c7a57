// What NCCL hands to a profiler plugin, as far as we read it: five versions of one interface.
// Layouts as in src/include/plugin/profiler/profiler_v1.h … profiler_v5.h of NVIDIA/nccl (2.23 has
// v1, 2.24 v2, 2.26 v3, 2.27 v4, 2.28 v5); numbers of kinds, types and algorithms as in
// src/include/nccl_common.h and src/nccl.h.in. A newer NCCL still takes the older tables.
#pragma once

#include <cstddef>
#include <cstdint>

namespace warmgate::probe::nccl {

using Status = int;  // ncclResult_t
inline constexpr Status kSuccess = 0;

/// What an event is of; also the bits of the mask by which a plugin says what it wants to hear.
enum EventType : std::uint64_t {
  kGroup = 1u << 0,
  kCollective = 1u << 1,
  kPointToPoint = 1u << 2,
  kGroupApi = 1u << 8,  // from here on: v5
  kCollectiveApi = 1u << 9,
  kPointToPointApi = 1u << 10,
};

// In v1 names are numbers.
struct CollectiveV1 {
  const char* communicator;
  std::uint64_t hash;
  std::uint64_t seq;
  std::uint8_t func;
  const void* send;
  void* receive;
  std::size_t count;
  int root;
  std::uint8_t datatype;
  std::uint32_t op;
  std::size_t traffic_bytes;
  std::uint8_t max_channels, warps, algorithm, protocol;
};
struct PointToPointV1 {
  const char* communicator;
  std::uint64_t hash;
  std::uint8_t func;
  void* buffer;
  std::uint8_t datatype;
  std::size_t count;
  int peer;
};

// v2 and v3 differ only in `traffic_bytes`, which v3 dropped.
struct CollectiveV2 {
  const char* communicator;
  std::uint64_t hash;
  std::uint64_t seq;
  const char* func;
  const void* send;
  void* receive;
  std::size_t count;
  int root;
  const char* datatype;
  std::size_t traffic_bytes;
  std::uint8_t max_channels, warps;
  const char *algorithm, *protocol;
};
struct CollectiveV3 {
  const char* communicator;
  std::uint64_t hash;
  std::uint64_t seq;
  const char* func;
  const void* send;
  void* receive;
  std::size_t count;
  int root;
  const char* datatype;
  std::uint8_t max_channels, warps;
  const char *algorithm, *protocol;
};
struct PointToPointV2 {
  const char* communicator;
  std::uint64_t hash;
  const char* func;
  void* buffer;
  const char* datatype;
  std::size_t count;
  int peer;
};

// From v4 on init() says which communicator it is.
struct CollectiveV4 {
  std::uint64_t seq;
  const char* func;
  const void* send;
  void* receive;
  std::size_t count;
  int root;
  const char* datatype;
  std::uint8_t channels, warps;
  const char *algorithm, *protocol;
};
struct PointToPointV4 {
  const char* func;
  void* buffer;
  const char* datatype;
  std::size_t count;
  int peer;
  std::uint8_t channels;
};

// v5 adds the calls of the host as events of their own: they come before anything can block.
struct CollectiveApiV5 {
  const char* func;
  std::size_t count;
  const char* datatype;
  int root;
  void* stream;
  bool graph_captured;
};
struct PointToPointApiV5 {
  const char* func;
  std::size_t count;
  const char* datatype;
  void* stream;
  bool graph_captured;
};

template <typename Type, typename Collective, typename PointToPoint>
struct DescriptorOf {
  Type type;
  void* parent;
  int rank;
  union {
    Collective collective;
    PointToPoint p2p;
  };
};
using DescriptorV1 = DescriptorOf<std::uint8_t, CollectiveV1, PointToPointV1>;
using DescriptorV2 = DescriptorOf<std::uint8_t, CollectiveV2, PointToPointV2>;
using DescriptorV3 = DescriptorOf<std::uint8_t, CollectiveV3, PointToPointV2>;
using DescriptorV4 = DescriptorOf<std::uint8_t, CollectiveV4, PointToPointV4>;
struct DescriptorV5 {
  std::uint64_t type;
  void* parent;  // of a collective: the event of the call it comes from
  int rank;      // 0 in events of calls, whoever calls (NVIDIA/nccl#2300)
  union {
    CollectiveApiV5 collective_api;
    PointToPointApiV5 p2p_api;
    CollectiveV4 collective;
    PointToPointV4 p2p;
  };
};

static_assert(offsetof(DescriptorV1, collective) == 24);
static_assert(offsetof(CollectiveV1, count) == 48 && offsetof(CollectiveV1, datatype) == 60);
static_assert(offsetof(CollectiveV1, traffic_bytes) == 72);
static_assert(offsetof(CollectiveV2, datatype) == 64 && offsetof(CollectiveV2, algorithm) == 88);
static_assert(offsetof(CollectiveV3, algorithm) == 80);
static_assert(offsetof(PointToPointV2, peer) == 48);
static_assert(offsetof(CollectiveV4, datatype) == 48 && offsetof(CollectiveV4, protocol) == 72);
static_assert(offsetof(PointToPointV4, peer) == 32);
static_assert(offsetof(DescriptorV5, collective_api) == 24);
static_assert(offsetof(CollectiveApiV5, graph_captured) == 40);

using InitV1 = Status (*)(void** context, int* mask);
using InitV4 = Status (*)(void** context, int* mask, const char* name, std::uint64_t hash,
                          int nodes, int ranks, int rank, void* logger);
using InitV5 = Status (*)(void** context, std::uint64_t hash, int* mask, const char* name,
                          int nodes, int ranks, int rank, void* logger);

/// A table as NCCL looks it up by name, `ncclProfiler_v1` … `ncclProfiler_v5`.
template <typename Init, typename Descriptor>
struct TableOf {
  const char* name;
  Init init;
  Status (*start)(void* context, void** event, Descriptor* descriptor);
  Status (*stop)(void* event);
  Status (*record)(void* event, int state, void* arguments);
  Status (*finalize)(void* context);
};
using TableV1 = TableOf<InitV1, DescriptorV1>;
using TableV2 = TableOf<InitV1, DescriptorV2>;
using TableV3 = TableOf<InitV1, DescriptorV3>;
using TableV4 = TableOf<InitV4, DescriptorV4>;
using TableV5 = TableOf<InitV5, DescriptorV5>;

}  // namespace warmgate::probe::nccl
