// The bookkeeping of a pass over a graph, on a device that only notes what it is asked for.
#include "harness/engine/ops/graph_pass.h"

#include <gmock/gmock.h>

#include "harness/engine/ops/noted_runtime.h"

namespace warmgate::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Noted = testing::NotedRuntime;

class WithGraphs final : public Device {
 public:
  explicit WithGraphs(Noted& noted) : noted_(noted) {}
  std::string_view name() const override { return "noted"; }
  kernels::Kernels* kernels() const override { return nullptr; }
  std::unique_ptr<Backing> make_backing(std::int64_t) const override { return nullptr; }
  std::span<std::byte> contents(std::uint64_t, std::int64_t) const override { return {}; }
  void read(std::uint64_t, std::span<std::byte>) const override {}
  void write(std::uint64_t, std::span<const std::byte>) const override {}
  void fill(std::uint64_t, std::int64_t, std::uint8_t) const override {}
  void wait(const char*) const override {}
  kernels::cuda::Runtime* gpu() const override { return &noted_; }

 private:
  Noted& noted_;
};

GraphOp op(const std::string& kernel, std::uint64_t address, std::int64_t integer = 1,
           int layer = 0) {
  GraphOp out;
  out.kernel = kernel;
  out.layer = {layer, "c4a", "target"};
  out(make_tensor(DType::kFp32, {4, 8}, address));
  out(integer);
  return out;
}

struct GraphPassTest : ::testing::Test {
  Noted noted;
  WithGraphs device{noted};
  CapturedGraph graph{"full/4", 4, false, {}, {}};

  void capture(const std::vector<GraphOp>& ops) {
    GraphPass pass(GraphPass::Kind::kCapture, graph, device);
    pass.begin();
    for (const GraphOp& each : ops) EXPECT_TRUE(pass.see(each));
    pass.end();
    noted.calls.clear();
  }
  std::vector<GraphDifference> replay(const std::vector<GraphOp>& ops) {
    GraphPass pass(GraphPass::Kind::kReplay, graph, device);
    pass.begin();
    for (const GraphOp& each : ops) EXPECT_FALSE(pass.see(each)) << "a replay runs nothing";
    pass.end();
    return pass.differences();
  }
};

TEST_F(GraphPassTest, TheSameStepReplaysWithoutADifference) {
  capture({op("a", 512), op("b", 1024)});
  EXPECT_EQ(graph.ops.size(), 2u);
  EXPECT_TRUE(replay({op("a", 512), op("b", 1024)}).empty());
  // Nothing that the host allocates on its way is filled before the graph has run.
  EXPECT_THAT(noted.calls, ElementsAre("mute", "unmute", "replay 1"));
}

TEST_F(GraphPassTest, AnotherKernelIsABranchAndDoesNotMakeTheRestDiffer) {
  capture({op("a", 512), op("fill", 512), op("b", 512), op("c", 512)});
  const auto found =
      replay({op("a", 512), op("clear", 512), op("score", 512), op("b", 512), op("c", 512)});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].kind, "branch");
  EXPECT_EQ(found[0].captured, "fill");
  EXPECT_EQ(found[0].asked, "clear");
}

TEST_F(GraphPassTest, OneOpMoreAndOneLessAreSaidOnce) {
  capture({op("a", 512), op("b", 512), op("c", 512)});
  const auto less = replay({op("a", 512), op("c", 512)});
  ASSERT_EQ(less.size(), 1u);
  EXPECT_EQ(less[0].captured, "b");
  EXPECT_EQ(less[0].asked, "c");
  const auto ends = replay({op("a", 512), op("b", 512)});
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].asked, "nothing more");
  const auto more = replay({op("a", 512), op("b", 512), op("c", 512), op("d", 512)});
  ASSERT_EQ(more.size(), 1u);
  EXPECT_EQ(more[0].captured, "nothing more");
}

TEST_F(GraphPassTest, AddressesArePointersAndTheRestArguments) {
  capture({op("a", 512, 3)});
  const auto moved = replay({op("a", 4096, 3)});
  ASSERT_EQ(moved.size(), 1u);
  EXPECT_EQ(moved[0].kind, "pointer");
  EXPECT_THAT(moved[0].captured, HasSubstr("0x200"));
  EXPECT_THAT(moved[0].asked, HasSubstr("0x1000"));
  const auto other = replay({op("a", 512, 4)});
  ASSERT_EQ(other.size(), 1u);
  EXPECT_EQ(other[0].kind, "argument");
  const auto layer = replay({op("a", 512, 3, 7)});
  ASSERT_EQ(layer.size(), 1u);
  EXPECT_EQ(layer[0].kind, "branch") << "an op of another layer is another op";
}

TEST_F(GraphPassTest, PiecesEndWhereTheHostRunsEagerly) {
  graph.piecewise = true;
  {
    GraphPass pass(GraphPass::Kind::kCapture, graph, device);
    pass.begin();
    EXPECT_TRUE(pass.inside());
    pass.see(op("a", 512));
    pass.leave();
    EXPECT_FALSE(pass.inside());
    pass.enter();
    pass.see(op("b", 512));
    pass.end();
  }
  EXPECT_THAT(noted.calls, ElementsAre("begin", "end", "begin", "end"));
  EXPECT_EQ(graph.pieces.size(), 2u);
  noted.calls.clear();
  GraphPass pass(GraphPass::Kind::kReplay, graph, device);
  pass.begin();
  pass.see(op("a", 512));
  pass.leave();
  pass.enter();
  pass.see(op("b", 512));
  pass.end();
  EXPECT_THAT(noted.calls, ElementsAre("mute", "unmute", "replay 1", "mute", "unmute", "replay 2"));
}

TEST_F(GraphPassTest, AnUnfinishedPassLeavesNoCaptureAndNoSilenceBehind) {
  {
    GraphPass pass(GraphPass::Kind::kCapture, graph, device);
    pass.begin();
  }
  EXPECT_THAT(noted.calls, ElementsAre("begin", "abandon"));
  noted.calls.clear();
  {
    GraphPass pass(GraphPass::Kind::kReplay, graph, device);
    pass.begin();
  }
  EXPECT_THAT(noted.calls, ElementsAre("mute", "unmute"));
}

}  // namespace
}  // namespace warmgate::engine
