// What the probe keeps for a hang, what it does once the engine is ready, and how it lets go.
#include <gmock/gmock.h>

#include <memory>
#include <thread>

#include "harness/probe/test_support.h"

namespace warmgate::probe::testing {
namespace {

using ::testing::ElementsAre;

struct Arguments {
  std::uint64_t at[8] = {};
};

TEST(CallTable, HoldsTheCallThatAThreadIsIn) {
  const auto file = std::make_unique<trace::CallTableFile>();
  CallTable table;
  table.use(file.get());
  ObserverOptions options;
  options.call_table = &table;
  Heard heard(options);
  ASSERT_EQ(heard.attach(), "");
  FakeCupti& driver = FakeCupti::now();
  const Arguments none;
  const trace::CallSlot& slot = file->slots[0];
  std::int64_t inside = 0;
  driver.call("cuStreamSynchronize", &none, [&] { inside = slot.since_ns; });
  EXPECT_EQ(slot.tid, thread_id());
  EXPECT_STREQ(slot.call, "cuStreamSynchronize");
  EXPECT_GT(inside, 0);
  EXPECT_LE(inside, trace::now_ns());
  EXPECT_EQ(slot.since_ns, 0) << "it has come back";
  std::thread([&] { driver.call("cuGraphLaunch", &none); }).join();
  EXPECT_STREQ(file->slots[1].call, "cuGraphLaunch");
  EXPECT_STREQ(slot.call, "cuStreamSynchronize") << "another thread's slot is its own";
  EXPECT_EQ(slot.calls, 1u);
}

TEST(CallTable, MoreThreadsThanItHasRoomForAreNotFollowed) {
  const auto file = std::make_unique<trace::CallTableFile>();
  CallTable table;
  table.use(file.get());
  for (std::size_t i = 0; i < trace::kCallSlots; ++i) file->slots[i].tid = 1;
  table.enter("cuGraphLaunch", 5);
  table.leave();
  for (const trace::CallSlot& slot : file->slots) EXPECT_EQ(slot.calls, 0u);
  CallTable none;
  none.enter("cuGraphLaunch", 5);
  none.leave();
}

TEST(Attach, AsksForNoDeviceMemoryBeforeItSubscribes) {
  Heard heard;
  ASSERT_EQ(heard.attach(), "");
  EXPECT_THAT(FakeCupti::now().attributes, ElementsAre(cupti::kDeviceBufferPreAllocate));
}

TEST(Ready, EveryKernelsFirstLaunchIsToldOnceMoreAfterIt) {
  unsigned char ready = 0;
  ObserverOptions options;
  options.launches = true;
  options.ready = &ready;
  Heard heard(options);
  ASSERT_EQ(heard.attach(), "");
  const Arguments one{{0x7f0000000010}}, two{{0x7f0000000020}};
  FakeCupti& driver = FakeCupti::now();
  for (int i = 0; i < 2; ++i) driver.call("cuLaunchKernel", &one, 0, "one");
  ready = 1;
  for (int i = 0; i < 2; ++i) driver.call("cuLaunchKernel", &one, 0, "one");
  driver.call("cuLaunchKernel", &two, 0, "two");
  const trace::Trace trace = heard.events();
  std::vector<std::pair<std::string, bool>> told;
  for (const trace::Event* e : trace.of("first_launch"))
    told.emplace_back(e->str("kernel"), e->flag("ready"));
  EXPECT_THAT(told,
              ElementsAre(std::pair("one", false), std::pair("one", true), std::pair("two", true)));
}

TEST(Detach, ComesAfterReadyOnACallsWayOutAndOnce) {
  unsigned char ready = 0;
  int detached = 0, inside = 0;
  ObserverOptions options;
  options.ready = &ready;
  options.detach_after_ns = 0;
  options.detach = [&] { ++detached; };
  Heard heard(options);
  ASSERT_EQ(heard.attach(), "");
  FakeCupti& driver = FakeCupti::now();
  const Arguments none;
  for (int i = 0; i < 3; ++i) driver.call("cuStreamSynchronize", &none);
  EXPECT_EQ(detached, 0) << "not ready yet";
  ready = 1;
  driver.call("cuStreamSynchronize", &none);  // from here on it counts
  driver.call("cuStreamSynchronize", &none, [&] { inside = detached; });
  EXPECT_EQ(inside, 0) << "CUPTI takes it in the callback of a call's way out only";
  EXPECT_EQ(detached, 1);
  driver.call("cuStreamSynchronize", &none);
  EXPECT_EQ(detached, 1);
  EXPECT_EQ(heard.events().of("probe").back()->str("status"), "detached");
}

TEST(Detach, WaitsWhileAStreamIsCaptured) {
  unsigned char ready = 1;
  int detached = 0;
  ObserverOptions options;
  options.ready = &ready;
  options.detach_after_ns = 0;
  options.detach = [&] { ++detached; };
  Heard heard(options);
  ASSERT_EQ(heard.attach(), "");
  FakeCupti& driver = FakeCupti::now();
  std::uint64_t graph = 0;
  const Arguments begin{{7, 0}}, end{{7, reinterpret_cast<std::uint64_t>(&graph)}}, none;
  driver.call("cuStreamBeginCapture_v2_ptsz", &begin);
  for (int i = 0; i < 3; ++i) driver.call("cuGraphLaunch", &none);
  EXPECT_EQ(detached, 0);
  driver.call("cuStreamEndCapture", &end);
  EXPECT_EQ(detached, 1);
}

TEST(Detach, UnsubscribesAndFinalizesOnce) {
  Heard heard;
  ASSERT_EQ(heard.attach(), "");
  detach(FakeCupti::api(), heard.subscriber);
  detach(FakeCupti::api(), heard.subscriber);
  EXPECT_EQ(FakeCupti::now().unsubscribed, 1);
  EXPECT_EQ(FakeCupti::now().finalized, 1);
  EXPECT_EQ(heard.subscriber, nullptr);
}

}  // namespace
}  // namespace warmgate::probe::testing
