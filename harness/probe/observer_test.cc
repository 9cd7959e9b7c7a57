// The probe on a driver that is not there: every kind of event, captures around them, and bounds.
#include "harness/probe/observer.h"

#include <gmock/gmock.h>

#include <functional>
#include <map>
#include <thread>

#include "harness/probe/test_support.h"

namespace warmgate::probe::testing {
namespace {

using ::testing::ElementsAre;

std::uint64_t address(const void* of) { return reinterpret_cast<std::uint64_t>(of); }

struct Words {
  std::uint64_t at[8] = {};
};

void capture(FakeCupti& driver, std::uint64_t stream, int mode, const std::function<void()>& body) {
  const Words begin{{stream, static_cast<std::uint64_t>(mode)}};
  driver.call("cuStreamBeginCapture_v2_ptsz", &begin);
  body();
  std::uint64_t graph = 0;
  const Words end{{stream, address(&graph)}};
  driver.call("cuStreamEndCapture", &end, [&] { graph = 0x6000 + stream; });
}

void allocate(FakeCupti& driver, std::uint64_t where, std::uint64_t bytes, int result = 0) {
  std::uint64_t out = 0;
  const Words words{{address(&out), bytes}};
  driver.call(
      "cuMemAlloc_v2", &words, [&] { out = where; }, result);
}

ObserverOptions with_launches() {
  ObserverOptions out;
  out.launches = true;
  return out;
}

TEST(Probe, ListensToNothingButWhatItKnows) {
  Heard heard;
  EXPECT_EQ(heard.attach(), "");
  const auto& on = FakeCupti::now().enabled;
  EXPECT_EQ(on.count(FakeCupti::id_of("cuInit")), 0u);
  EXPECT_EQ(on.count(FakeCupti::id_of("cuMemAlloc_v2")), 1u);
  EXPECT_EQ(on.count(FakeCupti::id_of("cuStreamBeginCapture_v2_ptsz")), 1u)
      << "the variant of a per-thread stream is the same call";
  EXPECT_EQ(on.count(FakeCupti::id_of("cuLaunchKernel")), 0u) << "launches only on request";
  Heard asked(with_launches());
  EXPECT_EQ(asked.attach(), "");
  EXPECT_EQ(FakeCupti::now().enabled.count(FakeCupti::id_of("cuLaunchKernelEx")), 1u);
}

TEST(Probe, WhatIsInTheWayIsSaidAndNothingStaysSubscribed) {
  Heard heard;
  FakeCupti::now().subscribe_result = cupti::kMultipleSubscribers;
  EXPECT_THAT(heard.attach(), ::testing::HasSubstr("another tool of this process"));
  EXPECT_EQ(heard.subscriber, nullptr);
  FakeCupti::now().subscribe_result = 0;
  FakeCupti::now().enable_result = 43;
  EXPECT_THAT(heard.attach(), ::testing::HasSubstr("(43)"));
  EXPECT_EQ(FakeCupti::now().unsubscribed, 1);
  FakeCupti::now().enable_result = 0;
  FakeCupti::now().names_nothing = true;
  EXPECT_THAT(heard.attach(), ::testing::HasSubstr("names none"));
  EXPECT_EQ(FakeCupti::now().unsubscribed, 2);
}

TEST(Probe, CodeOfALibraryIsToldFromCodeOutOfMemory) {
  Heard heard;
  ASSERT_EQ(heard.attach(), "");
  FakeCupti& driver = FakeCupti::now();
  static const char mapped[] = "code in this program";
  const std::string heap = "code in memory, longer than any small string buffer";
  const Words library{{0, address(mapped)}}, memory{{0, address(heap.data())}};
  const Words file{{0, address("/tmp/kernel.cubin")}};
  driver.call("cuModuleLoadData", &library, [&] { driver.module(1, "one"); });
  driver.call("cuModuleLoadData", &memory, [&] { driver.module(2, "two"); });
  driver.call("cuLibraryLoadFromFile", &file, [&] { driver.module(3, "three"); });
  driver.module(4, "lazily");
  const trace::Trace trace = heard.events();
  std::vector<std::string> origins, loads;
  for (const trace::Event* e : trace.of("module")) origins.push_back(e->str("origin"));
  for (const trace::Event* e : trace.of("load")) loads.push_back(e->str("origin"));
  EXPECT_THAT(origins, ElementsAre("library", "memory", "file", "library"));
  EXPECT_THAT(loads, ElementsAre("library", "memory", "file"));
  EXPECT_FALSE(trace.of("module")[0]->flag("lazy"));
  EXPECT_TRUE(trace.of("module")[3]->flag("lazy"));
  EXPECT_EQ(trace.of("load")[2]->str("file"), "/tmp/kernel.cubin");
  EXPECT_GE(trace.of("load")[1]->real("ms"), 0);
  EXPECT_TRUE(trace.bad_lines.empty());
}

TEST(Probe, AllocationsAreToldFromASizeOnAndAlwaysInsideACapture) {
  Heard heard;
  ASSERT_EQ(heard.attach(), "");
  FakeCupti& driver = FakeCupti::now();
  allocate(driver, 0x1000, 1 << 20);
  allocate(driver, 0x2000, (1 << 20) - 1);
  allocate(driver, 0x3000, 1 << 30, 2);  // out of memory: nothing was taken
  capture(driver, 7, 0, [&] { allocate(driver, 0x4000, 512); });
  const Words told{{0x1000}}, untold{{0x2000}}, never{{0x9999}};
  for (const Words* words : {&told, &untold, &never}) driver.call("cuMemFree_v2", words);
  heard.observer.totals();
  const trace::Trace trace = heard.events();
  const auto allocs = trace.of("alloc");
  ASSERT_EQ(allocs.size(), 2u);
  EXPECT_EQ(allocs[0]->num("bytes"), 1 << 20);
  EXPECT_EQ(allocs[0]->str("in_capture"), "");
  EXPECT_EQ(allocs[1]->num("bytes"), 512);
  EXPECT_EQ(allocs[1]->str("in_capture"), "own");
  ASSERT_EQ(trace.of("free").size(), 1u);
  EXPECT_EQ(trace.of("free")[0]->num("bytes"), 1 << 20);
  EXPECT_EQ(trace.of("counter")[0]->num("value"), 1);
  EXPECT_EQ(trace.of("counter")[0]->num("bytes"), (1 << 20) - 1);
}

TEST(Probe, ACaptureMarksItsOwnThreadAndIfGlobalTheOthers) {
  for (const int mode : {0, 1, 2}) {
    Heard heard;
    ASSERT_EQ(heard.attach(), "");
    FakeCupti& driver = FakeCupti::now();
    const Words stream{{7}};
    driver.call("cuStreamSynchronize", &stream);  // outside: says nothing
    capture(driver, 7, mode, [&] {
      driver.call("cuStreamSynchronize", &stream);
      std::thread([&] { driver.module(1, "beside"); }).join();
    });
    driver.call("cuStreamSynchronize", &stream);
    const trace::Trace trace = heard.events();
    ASSERT_EQ(trace.of("sync").size(), 1u);
    EXPECT_EQ(trace.of("sync")[0]->str("in_capture"), "own");
    EXPECT_EQ(trace.of("module")[0]->str("in_capture"), mode == 0 ? "other" : "");
    ASSERT_EQ(trace.of("capture").size(), 1u);
    EXPECT_EQ(trace.of("capture")[0]->str("graph"), "0x6007");
  }
}

TEST(Probe, AGraphIsFollowedFromItsCaptureToItsEnd) {
  Heard heard;
  ASSERT_EQ(heard.attach(), "");
  FakeCupti& driver = FakeCupti::now();
  capture(driver, 7, 2, [] {});
  std::uint64_t exec = 0;
  const Words make{{address(&exec), 0x6007}};
  driver.call("cuGraphInstantiateWithFlags", &make, [&] { exec = 0xE0; });
  const Words run{{0xE0}};
  for (int i = 0; i < 3; ++i) driver.call("cuGraphLaunch", &run);
  driver.call("cuGraphExecDestroy", &run);
  driver.call("cuGraphExecDestroy", &run);
  const trace::Trace trace = heard.events();
  const auto graphs = trace.of("graph");
  ASSERT_EQ(graphs.size(), 2u);
  EXPECT_EQ(graphs[0]->str("status"), "instantiated");
  EXPECT_EQ(graphs[0]->num("capture"), 1);
  EXPECT_EQ(graphs[1]->str("status"), "gone");
  EXPECT_EQ(trace.of("replay").size(), 1u) << "the first replay says that it is used";
}

// A kernel (0xF) of two parameters: an integer, and a struct of a number and a pointer.
int two_parameters(const void* function, std::size_t index, std::size_t* offset,
                   std::size_t* size) {
  if (function != reinterpret_cast<const void*>(0xF) || index > 1) return 1;
  *offset = index * 8;
  *size = index == 0 ? 4 : 16;
  return 0;
}
int knows_nothing(const void*, std::size_t, std::size_t*, std::size_t*) { return 1; }

TEST(Probe, MemoryGivenBackUnderALivingGraphIsNamed) {
  ObserverOptions options;
  options.parameters = {knows_nothing, two_parameters};
  std::vector<bool> switched;
  options.listen_to_launches = [&](bool on) {
    switched.push_back(on);
    listen_to_launches(FakeCupti::api(), &FakeCupti::now(), on);
  };
  Heard heard(options);
  ASSERT_EQ(heard.attach(), "");
  FakeCupti& driver = FakeCupti::now();
  for (const std::uint64_t where : {0x100000, 0x500000, 0x900000}) allocate(driver, where, 1 << 20);
  const auto launch = [&](std::uint64_t pointer) {
    std::uint32_t number = 7;
    std::uint64_t pair[2] = {42, pointer};
    void* arguments[] = {&number, pair};
    const Words ex{{0, 0xF, address(arguments)}};
    driver.call("cuLaunchKernelEx", &ex, 0, "kernel");
  };
  launch(0x900000);  // before the capture: nothing to do with the graph
  capture(driver, 7, 2, [&] { launch(0x100000 + 4096); });
  launch(0x900000);
  std::uint64_t exec = 0;
  const Words make{{address(&exec), 0x6007}}, of_graph{{0xE0}};
  driver.call("cuGraphInstantiateWithFlags", &make, [&] { exec = 0xE0; });
  const Words named{{0x100000}}, other{{0x900000}};
  driver.call("cuMemFree_v2", &other);
  driver.call("cuMemFree_v2", &named);
  allocate(driver, 0x100000, 1 << 20);  // the address comes back, as another block
  driver.call("cuMemFree_v2", &named);
  driver.call("cuGraphExecDestroy", &of_graph);
  const trace::Trace trace = heard.events();
  ASSERT_FALSE(trace.of("graph").empty());
  EXPECT_EQ(trace.of("graph")[0]->num("kernels"), 1) << "what is launched before and after is none";
  EXPECT_EQ(trace.of("graph")[0]->num("blocks"), 1);
  const auto frees = trace.of("free");
  ASSERT_EQ(frees.size(), 3u);
  EXPECT_THAT(frees[0]->strings("named_by"), ElementsAre());
  EXPECT_THAT(frees[1]->strings("named_by"), ElementsAre("0xe0"));
  EXPECT_THAT(frees[2]->strings("named_by"), ElementsAre());
  EXPECT_THAT(switched, ElementsAre(true, false)) << "launches cost nothing outside of captures";
  EXPECT_TRUE(trace.of("first_launch").empty());
}

TEST(Probe, EveryKernelIsToldOnceHoweverManyThreadsLaunchIt) {
  Heard heard(with_launches());
  ASSERT_EQ(heard.attach(), "");
  FakeCupti& driver = FakeCupti::now();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (std::uint64_t i = 0; i < 300; ++i) {
        const Words launch{{0x7f0000000000 + (i % 100) * 16}}, ex{{0, 0x7f0000100000}};
        driver.call("cuLaunchKernel", &launch, 0, "kernel");
        driver.call("cuLaunchKernelEx", &ex, 0, "other");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(heard.events().of("first_launch").size(), 101u);
}

TEST(Probe, WhatItSaysIsBoundedAndCounted) {
  Heard heard;
  ASSERT_EQ(heard.attach(), "");
  // A reader beside it: a pipe holds less than what is said.
  trace::Trace trace;
  std::thread reader;
  {
    FakeCupti& driver = FakeCupti::now();
    reader = std::thread([&] { trace = heard.events_until_end(); });
    for (std::uint64_t i = 0; i < 2500; ++i) allocate(driver, 0x10000 * (i + 1), 1 << 20);
    heard.report.close(5'000'000, 7);
    heard.hang_up();
  }
  reader.join();
  EXPECT_EQ(trace.of("alloc").size(), 2000u);
  std::map<std::string, double> counters;
  for (const trace::Event* e : trace.of("counter")) counters[e->str("name")] = e->real("value");
  EXPECT_EQ(counters["probe_lines_dropped"], 500);
  EXPECT_EQ(counters["probe_own_ms"], 5);
  EXPECT_EQ(counters["probe_calls"], 7);
  EXPECT_EQ(trace.events.back().ev, "bye");
}

TEST(Probe, AChildOfAForkSaysNothing) {
  Heard heard;
  ASSERT_EQ(heard.attach(), "");
  heard.report.forget();
  allocate(FakeCupti::now(), 0x1000, 1 << 21);
  heard.report.close(0, 0);
  EXPECT_THAT(heard.events().events, ::testing::SizeIs(1)) << "its hello";
}

TEST(Probe, OwnTimeIsSummed) {
  Heard heard;
  ASSERT_EQ(heard.attach(), "");
  allocate(FakeCupti::now(), 0x1000, 1 << 21);
  EXPECT_GT(heard.observer.own_ns(), 0);
  EXPECT_EQ(heard.observer.calls(), 2u) << "in and out";
}

}  // namespace
}  // namespace warmgate::probe::testing
