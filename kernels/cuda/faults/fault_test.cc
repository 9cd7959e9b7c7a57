// What a GPU's failures are told as: a device assert, an access to nothing, a full device. The
// first two are the end of a process's use of the GPU, so that each has a process of its own.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

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

/// Its memory goes with the runtime, which takes back what is mapped whatever became of the device.
struct Gather {
  std::unique_ptr<Runtime> gpu = open();
  Function function = 0;
  std::uint64_t table = gpu->reserve(gpu->granularity());
  std::uint64_t out = gpu->reserve(gpu->granularity());

  explicit Gather(bool with_table) {
    const jit::Nvrtc nvrtc(jit::find_nvrtc().path);
    const jit::NvrtcResult made = nvrtc.compile(
        {kTakeRows, "take_rows.cu", {"--gpu-architecture=" + gpu->facts().architecture}, {}});
    if (!made.ok) throw std::runtime_error(made.log);
    function = gpu->load("take_rows", made.cubin, "take_rows");
    gpu->map(out, gpu->granularity());
    if (with_table) gpu->map(table, gpu->granularity());
  }
  int take(int id, int rows) {
    gpu->launch(function, 1, 1, 1, {&table, &id, &rows, &out}, "launch of take_rows");
    gpu->synchronize("take_rows");
    int value = 0;
    gpu->read(out, &value, sizeof value);
    return value;
  }
};

/// Says what came out of `id` on standard error and ends with 0 if it was a DeviceFault. The
/// gather is not destroyed: its GPU is gone.
[[noreturn]] void take_and_say(bool table, int id) {
  setenv("CUDA_LAUNCH_BLOCKING", "0", 1);
  unsetenv("CUDA_ENABLE_COREDUMP_ON_EXCEPTION");
  auto* const gather = new Gather(table);
  try {
    gather->take(id, 8);
  } catch (const DeviceFault& fault) {
    std::fprintf(stderr, "told by %s: %s\n", fault.call.c_str(), fault.code.c_str());
    std::_Exit(0);
  }
  std::_Exit(1);
}

class Faults : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = no_gpu(); !why.empty()) GTEST_SKIP() << why;
  }
};

/// With a kernel of its own.
class FaultsDeathTest : public Faults {
 protected:
  void SetUp() override {
    Faults::SetUp();
    if (IsSkipped()) return;
    // CUDA does not live through a fork: the child starts anew.
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    // What one client does to its context ends all clients there.
    if (std::getenv("CUDA_MPS_PIPE_DIRECTORY") != nullptr || access("/tmp/nvidia-mps", F_OK) == 0)
      GTEST_SKIP() << "other processes share this GPU's context (MPS)";
    if (jit::find_nvrtc().path.empty()) GTEST_SKIP() << jit::find_nvrtc().why_not;
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
    const int arch = 10 * properties.major + properties.minor;
    const jit::Nvrtc nvrtc(jit::find_nvrtc().path);
    const std::vector<int> known = nvrtc.architectures();
    if (std::find(known.begin(), known.end(), arch) == known.end())
      GTEST_SKIP() << "the NVRTC found does not know sm_" << arch;
  }
};

TEST_F(FaultsDeathTest, WithoutAFaultTheGatherWorks) {
  Gather gather(true);
  const std::vector<int> rows = {10, 11, 12, 13, 14, 15, 16, 17};
  gather.gpu->write(gather.table, rows.data(),
                    static_cast<std::int64_t>(rows.size() * sizeof(int)));
  EXPECT_EQ(gather.take(0, 8), 10);
  EXPECT_EQ(gather.take(7, 8), 17);
}

TEST_F(FaultsDeathTest, ADeviceAssertIsToldByWhoWaitsForIt) {
  EXPECT_EXIT(take_and_say(true, 8), ::testing::ExitedWithCode(0),
              "told by take_rows: cudaErrorAssert\n$");
}

TEST_F(FaultsDeathTest, AnIllegalAccessIsToldByWhoWaitsForIt) {
  EXPECT_EXIT(take_and_say(false, 7), ::testing::ExitedWithCode(0),
              "told by take_rows: cudaErrorIllegalAddress\n$");
}

TEST_F(Faults, AFullDeviceSaysHowMuchWasAskedForAndGoesOn) {
  const std::unique_ptr<Runtime> gpu = open();
  const std::int64_t unit = gpu->granularity();
  const std::int64_t asked = (gpu->facts().total_bytes / unit + 1) * unit;
  const std::uint64_t address = gpu->reserve(asked);
  try {
    gpu->map(address, asked);
    FAIL() << "more than there is was mapped";
  } catch (const DeviceFault& fault) {
    const std::string text = fault.what();
    EXPECT_EQ(fault.call, "cuMemCreate");
    EXPECT_EQ(fault.code, "cudaErrorMemoryAllocation");
    EXPECT_NE(text.find(std::to_string(asked) + " bytes asked for"), std::string::npos) << text;
    EXPECT_NE(text.find(std::to_string(gpu->facts().total_bytes) + " bytes free"),
              std::string::npos)
        << text;
  }
  EXPECT_NO_THROW(check_launch("a launch that has nothing to do with it"));
  gpu->map(address, unit);
  const int row = 41;
  int back = 0;
  gpu->write(address, &row, sizeof row);
  gpu->read(address, &back, sizeof back);
  EXPECT_EQ(back, 41);
}

// What the runtime itself refuses, too, is told once and then over.
TEST_F(Faults, AMallocThatFailsIsNotTheNextLaunchsFault) {
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  void* memory = nullptr;
  EXPECT_THROW(check(cudaMalloc(&memory, 2 * total), "cudaMalloc"), DeviceFault);
  EXPECT_NO_THROW(check_launch("a launch that has nothing to do with it"));
}

}  // namespace
}  // namespace warmgate::kernels::cuda
