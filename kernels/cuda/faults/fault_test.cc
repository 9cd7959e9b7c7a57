// What a GPU's failures are told as: a device assert, an access to nothing, a full device. The
// first two are the end of a process's use of the GPU, so that each has a process of its own.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "kernels/cuda/runtime.h"
#include "kernels/cuda/test_device.h"
#include "kernels/jit/jit.h"
#include "kernels/jit/nvrtc.h"

namespace warmgate::kernels::cuda {
namespace {

// A gather as engines have it: an id past the table trips an assert, and a table that is not there
// is an illegal access.
constexpr const char* kTakeRows = R"(
extern "C" __global__ void take_rows(const int* table, int id, int rows, int* out) {
  assert(id < rows);
  out[0] = table[id];
}
)";

std::unique_ptr<Runtime> open() {
  char error[256] = "";
  std::unique_ptr<Runtime> out(warmgate_cuda_open(0, error, sizeof error));
  if (!out) throw std::runtime_error(error);
  return out;
}

struct Gather {
  std::unique_ptr<Runtime> gpu = open();
  Function function = 0;
  std::uint64_t table = gpu->reserve(gpu->granularity());
  std::uint64_t out = gpu->reserve(gpu->granularity());
  bool mapped_table = false;

  Gather() {
    const jit::Nvrtc nvrtc(jit::find_nvrtc().path);
    const jit::NvrtcResult made = nvrtc.compile(
        {kTakeRows, "take_rows.cu", {"--gpu-architecture=" + gpu->facts().architecture}, {}});
    if (!made.ok) throw std::runtime_error(made.log);
    function = gpu->load("take_rows", made.cubin, "take_rows");
    gpu->map(out, gpu->granularity());
  }
  ~Gather() {
    if (mapped_table) gpu->unmap(table, gpu->granularity());
    gpu->unmap(out, gpu->granularity());
  }
  void map_table() {
    gpu->map(table, gpu->granularity());
    mapped_table = true;
  }
  int take(int id, int rows) {
    gpu->launch(function, 1, 1, 1, {&table, &id, &rows, &out}, "take_rows");
    gpu->synchronize("take_rows");
    int value = 0;
    gpu->read(out, &value, sizeof value);
    return value;
  }
};

/// Says what came out of `id` on standard error and ends with 0 if it was a DeviceFault. The
/// gather is not destroyed: its GPU is gone.
[[noreturn]] void take_and_say(bool table, int id) {
  auto* const gather = new Gather;
  if (table) gather->map_table();
  try {
    gather->take(id, 8);
  } catch (const DeviceFault& fault) {
    std::fprintf(stderr, "%s|%s\n", fault.call.c_str(), fault.code.c_str());
    std::_Exit(0);
  }
  std::_Exit(1);
}

class Faults : public ::testing::Test {
 protected:
  void SetUp() override {
    // CUDA does not live through a fork: the child starts anew.
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    if (const std::string why = no_gpu(); !why.empty()) GTEST_SKIP() << why;
    if (jit::find_nvrtc().path.empty()) GTEST_SKIP() << jit::find_nvrtc().why_not;
  }
};
using FaultsDeathTest = Faults;

TEST_F(Faults, WithoutOneTheGatherWorks) {
  Gather gather;
  gather.map_table();
  const std::vector<int> rows = {10, 11, 12, 13, 14, 15, 16, 17};
  gather.gpu->write(gather.table, rows.data(),
                    static_cast<std::int64_t>(rows.size() * sizeof(int)));
  EXPECT_EQ(gather.take(0, 8), 10);
  EXPECT_EQ(gather.take(7, 8), 17);
}

TEST_F(FaultsDeathTest, ADeviceAssertHasItsKernelsName) {
  EXPECT_EXIT(take_and_say(true, 8), ::testing::ExitedWithCode(0), "take_rows\\|cudaErrorAssert");
}

TEST_F(FaultsDeathTest, AnIllegalAccessHasItsKernelsName) {
  EXPECT_EXIT(take_and_say(false, 7), ::testing::ExitedWithCode(0),
              "take_rows\\|cudaErrorIllegalAddress");
}

TEST_F(Faults, AFullDeviceSaysHowMuchWasAskedForAndGoesOn) {
  Gather gather;
  const std::int64_t unit = gather.gpu->granularity();
  const std::int64_t asked = (gather.gpu->facts().total_bytes / unit + 1) * unit;
  const std::uint64_t address = gather.gpu->reserve(asked);
  try {
    gather.gpu->map(address, asked);
    FAIL() << "more than there is was mapped";
  } catch (const DeviceFault& fault) {
    EXPECT_EQ(fault.call, "cuMemCreate");
    EXPECT_EQ(fault.code, "cudaErrorMemoryAllocation");
    EXPECT_NE(
        std::string(fault.what()).find(" bytes free, " + std::to_string(asked) + " asked for"),
        std::string::npos)
        << fault.what();
  }
  gather.map_table();
  const int row = 41;
  gather.gpu->write(gather.table, &row, sizeof row);
  EXPECT_EQ(gather.take(0, 1), 41);
  gather.gpu->release(address, asked);
}

}  // namespace
}  // namespace warmgate::kernels::cuda
