// A program that drives the plugin as NCCL would: opens it, takes the table of one version, makes
// communicators and enters collectives. host PLUGIN VERSION STORY [N], where STORY is one of those
// below; ends with 0, or with what went wrong.
#include <dlfcn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "harness/probe/nccl/profiler_abi.h"

namespace {

using namespace warmgate::probe::nccl;

struct Call {
  const char* kind = "AllReduce";
  std::size_t count = 1024;
  const char* datatype = "ncclFloat32";
  std::uint64_t seq = 0;
  int peer = 0;
  bool captured = false;
};

std::uint8_t number_of(const char* name, std::initializer_list<const char*> names) {
  std::uint8_t i = 0;
  for (const char* each : names) {
    if (name != nullptr && std::strcmp(each, name) == 0) return i;
    ++i;
  }
  return 200;
}

// One rank of a communicator, by any version's table.
class Rank {
 public:
  Rank(void* table, int version, const char* name, std::uint64_t hash, int member, int ranks)
      : table_(table), version_(version), name_(name), hash_(hash), member_(member) {
    if (version_ <= 3) status_ = as<TableV1>().init(&context, &mask);
    if (version_ == 4)
      status_ = as<TableV4>().init(&context, &mask, name, hash, 1, ranks, member, nullptr);
    if (version_ == 5)
      status_ = as<TableV5>().init(&context, hash, &mask, name, 1, ranks, member, nullptr);
  }
  void collective(const Call& call) {
    if (version_ == 1) {
      DescriptorV1 d{};
      d.collective = {name_, hash_, call.seq, 0, nullptr, nullptr, call.count, 0,
                      0,     0,     0,        1, 1,       1,       2};
      d.collective.func =
          number_of(call.kind, {"Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce"});
      d.collective.datatype = number_of(call.datatype, {"ncclBfloat16"}) == 0 ? 9 : 7;
      start(as<TableV1>(), d, kCollective);
    } else if (version_ == 2) {
      DescriptorV2 d{};
      d.collective = {name_, hash_,         call.seq, call.kind, nullptr, nullptr, call.count,
                      0,     call.datatype, 0,        1,         1,       "RING",  "SIMPLE"};
      start(as<TableV2>(), d, kCollective);
    } else if (version_ == 3) {
      DescriptorV3 d{};
      d.collective = {name_, hash_,         call.seq, call.kind, nullptr, nullptr, call.count,
                      0,     call.datatype, 1,        1,         "RING",  "SIMPLE"};
      start(as<TableV3>(), d, kCollective);
    } else if (version_ == 4) {
      DescriptorV4 d{};
      d.collective = {call.seq,      call.kind, nullptr, nullptr, call.count, 0,
                      call.datatype, 1,         1,       "RING",  "SIMPLE"};
      start(as<TableV4>(), d, kCollective);
    } else {
      DescriptorV5 api{}, d{};
      api.collective_api = {call.kind, call.count, call.datatype, 0, nullptr, call.captured};
      void* parent = start(as<TableV5>(), api, kCollectiveApi, false);
      d.parent = parent;
      d.collective = {call.seq,      call.kind, nullptr, nullptr, call.count, 0,
                      call.datatype, 1,         1,       "RING",  "SIMPLE"};
      start(as<TableV5>(), d, kCollective);
      if (call.captured) start(as<TableV5>(), d, kCollective);  // a replay
    }
  }
  void transfer(const Call& call) {
    if (version_ == 1) {
      DescriptorV1 d{};
      d.p2p = {name_, hash_, 6, nullptr, 7, call.count, call.peer};
      start(as<TableV1>(), d, kPointToPoint);
    } else if (version_ <= 3) {
      DescriptorV2 d{};
      d.p2p = {name_, hash_, call.kind, nullptr, call.datatype, call.count, call.peer};
      start(as<TableV2>(), d, kPointToPoint);  // equal in v3
    } else if (version_ == 4) {
      DescriptorV4 d{};
      d.p2p = {call.kind, nullptr, call.datatype, call.count, call.peer, 1};
      start(as<TableV4>(), d, kPointToPoint);
    } else {
      DescriptorV5 api{}, d{};
      api.p2p_api = {call.kind, call.count, call.datatype, nullptr, false};
      d.parent = start(as<TableV5>(), api, kPointToPointApi, false);
      d.p2p = {call.kind, nullptr, call.datatype, call.count, call.peer, 1};
      start(as<TableV5>(), d, kPointToPoint);
    }
  }
  void leave() { status_ |= as<TableV1>().finalize(context); }
  Status status() const { return status_; }
  template <typename Table>
  Table& as() const {
    return *static_cast<Table*>(table_);
  }

  void* context = reinterpret_cast<void*>(1);
  int mask = -1;

 private:
  template <typename Table, typename Descriptor>
  void* start(Table& table, Descriptor& d, std::uint64_t type, bool stop = true) {
    d.type = static_cast<decltype(d.type)>(type);
    d.rank = version_ <= 4 ? member_ : 0;
    void* event = nullptr;
    status_ |= table.start(context, &event, &d);
    if (event == nullptr) status_ |= 16;  // NCCL then leaves out what hangs on it
    if (stop) status_ |= table.stop(event);
    return event;
  }
  void* table_;
  int version_;
  const char* name_;
  std::uint64_t hash_;
  int member_;
  Status status_ = 0;
};

void hostile(void* table, int version) {
  Rank rank(table, version, nullptr, 1, 0, 2);
  auto& v1 = rank.as<TableV1>();  // equal in every version: stop, record, finalize
  v1.stop(nullptr);
  v1.stop(reinterpret_cast<void*>(0x1234));
  v1.record(nullptr, 99, nullptr);
  v1.finalize(nullptr);
  v1.finalize(reinterpret_cast<void*>(0x77));
  void* event = nullptr;
  v1.start(rank.context, &event, nullptr);
  v1.start(rank.context, nullptr, nullptr);
  rank.collective({nullptr, ~std::size_t{0}, nullptr, ~std::uint64_t{0}});
  rank.transfer({nullptr, 5, nullptr, 0, -7});
  const std::string endless(100000, 'x');
  rank.collective({endless.c_str(), 1, "\"\\\n\xff", 5});
  for (const std::uint64_t type : {0ull, 3ull, 1ull << 7, 255ull, ~0ull}) {
    DescriptorV5 d{};
    d.type = type;
    reinterpret_cast<TableV5*>(table)->start(rank.context, &event, &d);
  }
  Rank inner(table, version, endless.c_str(), 2, 1, 2);
  auto* inside = static_cast<char*>(inner.context);
  inner.context = inside + 1;  // no communicator's
  inner.collective({});
  inner.context = inside;
  inner.collective({});
  inner.leave();
  inner.leave();
  inner.collective({});  // after the end
  for (int i = 0; i < 300; ++i) Rank(table, version, "many", 100u + unsigned(i), 0, 2);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const int version = std::atoi(argv[2]);
  const std::string story = argv[3];
  const std::uint64_t many = argc > 4 ? std::strtoull(argv[4], nullptr, 10) : 0;
  void* plugin = ::dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (plugin == nullptr) {
    std::fprintf(stderr, "%s\n", ::dlerror());
    return 3;
  }
  void* table = ::dlsym(plugin, ("ncclProfiler_v" + std::to_string(version)).c_str());
  if (table == nullptr) return 4;
  if (story == "hostile") {
    hostile(table, version);
    ::dlclose(plugin);
    return 0;
  }
  if (story == "rank") {  // one of two ranks; the first enters one operation more, and waits in it
    const int member = static_cast<int>(many);
    Rank mine(table, version, "world", 0x77, member, 2);
    for (std::uint64_t i = 0; i < 600; ++i)
      mine.collective({"AllReduce", 1 << 20, "ncclFloat32", i});
    if (member == 0) mine.collective({"AllGather", 7, "ncclFloat32", 0});
    for (;;) ::pause();
  }
  Rank world(table, version, "world", 0xabcdef, 1, 2);
  Rank tp(table, version, "tp", 0x1234, 0, 4);
  if (story == "mask") {
    std::printf("%d %d\n", world.mask, world.context != nullptr);
  } else if (story == "plain") {
    world.collective({"AllReduce", 1024, "ncclFloat32", 0});
    tp.collective({"AllGather", 10, "ncclBfloat16", 0});
    world.collective({"AllReduce", 4, "ncclFloat32", 1});
    tp.transfer({"Send", 7, "ncclFloat32", 0, 3});
    world.leave();
    ::dlclose(plugin);  // with its last communicator NCCL unloads a plugin
  } else if (story == "capture") {
    world.collective({"AllReduce", 1024, "ncclFloat32", 0, 0, true});
    world.collective({"AllReduce", 2048, "ncclFloat32", 0});
  } else if (story == "again") {  // before v5 a replay comes with the number of the last one
    for (const std::uint64_t seq : {0, 1, 1, 1, 2})
      world.collective({"AllReduce", 8, "ncclFloat32", seq});
  } else if (story == "many") {
    for (std::uint64_t i = 0; i < many; ++i)
      world.collective({"AllReduce", 8 + i % 7, "ncclFloat32", i});
  } else if (story == "killed") {
    for (std::uint64_t i = 0; i < many; ++i) world.collective({"AllReduce", 8, "ncclFloat32", i});
    world.collective({"ReduceScatter", 77, "ncclBfloat16", 0});
    std::raise(SIGKILL);
  } else if (story == "threads") {
    std::vector<std::thread> all;
    for (std::uint64_t t = 0; t < 8; ++t) {
      all.emplace_back([&, t] {
        Rank mine(table, version, "each", 0x1000 + t, int(t), 8);
        for (std::uint64_t i = 0; i < many; ++i)
          mine.collective({"AllReduce", 8, "ncclFloat32", i});
        mine.leave();
      });
    }
    for (std::thread& each : all) each.join();
  } else if (story == "fork") {
    world.collective({});
    const pid_t child = ::fork();
    if (child == 0) {
      world.collective({"AllGather"});
      Rank(table, version, "child", 5, 0, 2).collective({});
      std::exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    if (status != 0) return 7;
  } else if (story == "daemon") {  // closes what it finds, and may write no files
    for (int fd = 3; fd < 100; ++fd) ::close(fd);
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_FSIZE, &none);
    world.collective({});
  } else {
    return 5;
  }
  return world.status() + tp.status();
}
