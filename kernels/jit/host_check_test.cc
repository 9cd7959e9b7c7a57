#include "kernels/jit/host_kernels.h"
#include "kernels/jit/test_keys.h"

namespace warmgate::jit {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

TEST(HostCheck, WarmedKeysRun) {
  for (const Key& key : testing::all_keys({1, 4, 128})) {
    const HostCheck check = check_on_host(key);
    EXPECT_TRUE(check.ok) << key.text() << " " << check.fault << " " << check.message;
    EXPECT_EQ(check.fault, "");
  }
}

TEST(HostCheck, TwelveOfThirtySixDivideByZero) {
  int bad = 0;
  for (const Key& key : testing::chunk_keys({0, 4, 128})) {
    const HostCheck check = check_on_host(key);
    if (check.ok) continue;
    ++bad;
    EXPECT_THAT(key.text(), HasSubstr("COMPRESS_RATIO=0,"));
    EXPECT_EQ(check.fault, "division_by_zero");
    EXPECT_EQ(check.file, "kernels/jit/bodies/build_prefill_chunk_metadata.cuh");
    EXPECT_THAT(check.message, HasSubstr(" / 0"));
    EXPECT_THAT(check.message, EndsWith("tokens / COMPRESS_RATIO"));
    EXPECT_GT(check.line, 0);
  }
  EXPECT_EQ(bad, 12);
}

/// Launches with a key of its choice, or not at all.
class Other final : public Launcher {
 public:
  explicit Other(const Key* key) : key_(key) {}
  void run(const Key&, const ComputePrefillLaunch& launch) override { launch_or_not(launch); }
  void run(const Key&, const BuildChunkLaunch& launch) override { launch_or_not(launch); }
  void run(const Key&, const CombineLaunch& launch) override { launch_or_not(launch); }

 private:
  void launch_or_not(const auto& launch) {
    if (key_ != nullptr) run_on_host(*key_, launch);
  }
  const Key* key_;
};

TEST(CheckWith, WhoeverLaunchesIsHeldAgainstTheSameReference) {
  for (const Key& key : {testing::compute_key(8), testing::chunk_key("any", "any", 4, "T"),
                         testing::combine_key(4, 512, 512, "TTTT")}) {
    Other right(&key), nobody(nullptr);
    EXPECT_TRUE(check_with(right, key).ok) << key.text();
    EXPECT_EQ(check_with(nobody, key).fault, "unwritten") << key.text();
  }
  const Key four = testing::chunk_key("any", "any", 4, "T"),
            one = testing::chunk_key("any", "any", 1, "T");
  Other wrong(&one);
  EXPECT_EQ(check_with(wrong, four).fault, "wrong_result");
}

// Code that a lenient compiler made of a division by zero comes back; what it should have given is
// that of an uncompressed layer, and the reference must not divide by it either.
TEST(CheckWith, ARatioOfZeroMeansUncompressed) {
  const Key zero = testing::chunk_key("any", "any", 0, "T"),
            one = testing::chunk_key("any", "any", 1, "T");
  Other as_one(&one), nobody(nullptr);
  EXPECT_TRUE(check_with(as_one, zero).ok);
  EXPECT_EQ(check_with(nobody, zero).fault, "unwritten");
}

TEST(HostCheck, EveryConstantIsExercised) {
  const auto fault = [](const Key& key) { return check_on_host(key).fault; };
  EXPECT_EQ(fault(testing::combine_key(0, 512, 512, "TTTT")), "division_by_zero");
  EXPECT_EQ(fault(testing::chunk_key("any", "any", 4, "T", "0,0,1")), "division_by_zero");
  EXPECT_EQ(fault(testing::chunk_key("any", "any", 4, "T", "0,1,0")), "division_by_zero");
  EXPECT_EQ(fault(testing::combine_key(4, 512, 256, "TTTT")), "unwritten");
  EXPECT_EQ(fault(testing::combine_key(4, 512, 0, "TTTT")), "unwritten");
  EXPECT_EQ(fault(testing::compute_key(0)), "unwritten");
  EXPECT_EQ(fault(testing::compute_key(-4)), "unwritten");
  Key endless = testing::chunk_key("any", "any", 4, "T");
  endless.fields[5].second = "0";  // BLOCK_SIZE
  EXPECT_EQ(fault(endless), "endless");
  // A world of 2^30 makes base * DCP_WORLD fit, an interleave of 2^31 - 1 on rank 3 does not.
  EXPECT_EQ(fault(testing::chunk_key("any", "any", 1, "T", "3,4,2147483647")), "overflow");
  EXPECT_EQ(fault(parse_key("Other{A=1}")), "bad_key");
  EXPECT_EQ(fault(parse_key("CombineTopkSwaIndices{COMPRESS_RATIO=4}")), "bad_key");
}

TEST(HostCheck, BoundaryConstants) {
  for (const int ratio : {1, 2, 4, 127, 128, 129, 4096}) {
    for (const int top_k : {0, 1, 3, 512, 1280}) {
      int padded = 1;
      while (padded < top_k) padded *= 2;
      const HostCheck check = check_on_host(testing::combine_key(ratio, top_k, padded, "TFFF"));
      EXPECT_TRUE(check.ok) << ratio << " " << top_k << " " << check.fault << " " << check.message;
    }
    for (const char* start : {"one", "div16", "any"}) {
      for (const char* stop : {"one", "div16", "any"}) {
        const HostCheck check = check_on_host(testing::chunk_key(start, stop, ratio, "F", "1,3,2"));
        EXPECT_TRUE(check.ok) << start << stop << ratio << check.fault << " " << check.message;
      }
    }
  }
  EXPECT_TRUE(check_on_host(testing::compute_key(2048)).ok);
}

}  // namespace
}  // namespace warmgate::jit
