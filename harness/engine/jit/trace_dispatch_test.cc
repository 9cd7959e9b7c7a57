#include "harness/engine/jit/trace_dispatch.h"

#include "harness/engine/jit/dispatch.h"

namespace warmgate::engine {
namespace {

using ::testing::ElementsAre;

struct In {
  std::int64_t a = 0, b = 0, c = 0;
  bool flag = false;
};
using Inputs = WarmupInputs<In>;

TEST(IntRange, IsHalfOpenWithAStep) {
  EXPECT_THAT((IntRange{1, 4, 1}.values()), ElementsAre(1, 2, 3));
  EXPECT_THAT((IntRange{0, 5, 2}.values()), ElementsAre(0, 2, 4));
  EXPECT_THAT((IntRange{5, 0, -2}.values()), ElementsAre(5, 3, 1));
  EXPECT_THAT((IntRange{7, 8, 100}.values()), ElementsAre(7));
  EXPECT_THROW((IntRange{1, 1, 1}.values()), std::invalid_argument);
  EXPECT_THROW((IntRange{1, 4, 0}.values()), std::invalid_argument);
  EXPECT_THROW((IntRange{4, 1, 1}.values()), std::invalid_argument);
}

TEST(TraceDispatch, ExpandsInOrderAndRemovesDuplicates) {
  const auto sum = [](auto&& in) { return in(&In::a) * 10 + in(&In::b); };
  EXPECT_THAT(trace_dispatch(Inputs().range(&In::a, {1, 3, 1}).values(&In::b, {2, 1}), sum),
              ElementsAre(12, 11, 22, 21));
  EXPECT_THAT(trace_dispatch(Inputs().values(&In::b, {2, 1}).range(&In::a, {1, 3, 1}), sum),
              ElementsAre(12, 22, 11, 21));
  const auto half = [](auto&& in) { return in(&In::a) / 2; };
  EXPECT_THAT(trace_dispatch(Inputs().range(&In::a, {0, 7, 1}), half), ElementsAre(0, 1, 2, 3));
}

TEST(TraceDispatch, RowsChangeInLockStep) {
  const auto sum = [](auto&& in) { return in(&In::a) * 100 + in(&In::b) * 10 + in(&In::c); };
  EXPECT_THAT(
      trace_dispatch(Inputs().zip({&In::a, &In::b}, {{1, 2}, {3, 4}}).values(&In::c, {5, 6}), sum),
      ElementsAre(125, 126, 345, 346));
}

TEST(TraceDispatch, DropsUnusedInputsBeforeExpansion) {
  const auto only_a = [](auto&& in) { return in(&In::a); };
  std::size_t evaluations = 0;
  const auto keys = trace_dispatch(
      Inputs().range(&In::b, {0, 5'000, 1}).values(&In::a, {4, 5}).range(&In::c, {0, 5'000, 1}),
      only_a, &evaluations);
  EXPECT_THAT(keys, ElementsAre(4, 5));
  EXPECT_EQ(evaluations, 2u);
  // One column of a row in use brings the row.
  EXPECT_THAT(trace_dispatch(Inputs().zip({&In::b, &In::a}, {{0, 7}, {1, 8}}), only_a),
              ElementsAre(7, 8));
}

TEST(TraceDispatch, SeesInputsThatOnlyOneBranchReads) {
  const auto branch = [](auto&& in) { return in(&In::flag) ? in(&In::a) : in(&In::b); };
  std::size_t evaluations = 0;
  EXPECT_THAT(trace_dispatch(
                  Inputs().values(&In::flag, {1, 0}).values(&In::a, {1, 2}).values(&In::b, {3, 4}),
                  branch, &evaluations),
              ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(evaluations, 8u);
}

TEST(TraceDispatch, Refuses) {
  EXPECT_THROW(Inputs().values(&In::a, {1}).values(&In::a, {2}), std::invalid_argument);
  EXPECT_THROW(Inputs().values(&In::a, {1}).zip({&In::b, &In::a}, {{1, 2}}), std::invalid_argument);
  EXPECT_THROW(Inputs().zip({&In::a, &In::a}, {{1, 2}}), std::invalid_argument);
  EXPECT_THROW(Inputs().values(&In::a, {}), std::invalid_argument);
  EXPECT_THROW(Inputs().zip({&In::a, &In::b}, {{1, 2}, {3}}), std::invalid_argument);
  const auto sum = [](auto&& in) { return in(&In::a) + in(&In::b); };
  EXPECT_THROW(trace_dispatch(Inputs().values(&In::a, {1}), sum), std::invalid_argument);
}

TEST(Dispatch, KeysOfServing) {
  EXPECT_EQ(dispatch(ComputePrefillInputs{5}).text(), "ComputePrefillMetadata{BLOCK_SIZE=8}");
  EXPECT_EQ(dispatch(ComputePrefillInputs{0}).text(), "ComputePrefillMetadata{BLOCK_SIZE=1}");
  EXPECT_EQ(dispatch(ComputePrefillInputs{1024}).text(), "ComputePrefillMetadata{BLOCK_SIZE=1024}");
  EXPECT_EQ(dispatch(BuildChunkInputs{0, 37, 4, false}).text(),
            "BuildPrefillChunkMetadata{query_slice_start=div16,query_slice_stop=any,DCP_RANK=0,DCP_"
            "WORLD=1,"
            "DCP_INTERLEAVE=1,BLOCK_SIZE=1024,COMPRESS_RATIO=4,alignment=F}");
  EXPECT_EQ(dispatch(BuildChunkInputs{1, 16, 128, true}).text(),
            "BuildPrefillChunkMetadata{query_slice_start=one,query_slice_stop=div16,DCP_RANK=0,DCP_"
            "WORLD=1,"
            "DCP_INTERLEAVE=1,BLOCK_SIZE=1024,COMPRESS_RATIO=128,alignment=T}");
  EXPECT_EQ(dispatch(CombineInputs{128, 1280, 1280, 128, true, false, false, true}).text(),
            "CombineTopkSwaIndices{COMPRESS_RATIO=128,TOP_K=1280,PADDED_TOP_K=2048,WINDOW_SIZE=128,"
            "alignment=TFFT}");
  EXPECT_EQ(dispatch(CombineInputs{1, 0, 512, 64, true, true, true, false}).text(),
            "CombineTopkSwaIndices{COMPRESS_RATIO=1,TOP_K=0,PADDED_TOP_K=512,WINDOW_SIZE=64,"
            "alignment=TTTF}");
}

TEST(Dispatch, IntegerClasses) {
  EXPECT_EQ(int_class(0), IntClass::kDiv16);
  EXPECT_EQ(int_class(1), IntClass::kOne);
  EXPECT_EQ(int_class(15), IntClass::kAny);
  EXPECT_EQ(int_class(16), IntClass::kDiv16);
  EXPECT_EQ(int_class(17), IntClass::kAny);
}

}  // namespace
}  // namespace warmgate::engine
