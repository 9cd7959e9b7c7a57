#include "harness/engine/phases/machine_memory.h"

#include <gtest/gtest.h>

#include "harness/engine/ops/device.h"
#include "harness/engine/phases/random_config.h"

namespace warmgate::engine {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

scenario::Resolved config_on(std::string_view device) {
  scenario::Resolved config = test::small_config();
  config.device = device;
  return config;
}

TEST(MachineMemory, CountsWhatIsTouchedNotWhatIsReserved) {
  scenario::Resolved config = config_on("cpu");
  const MemoryNeed need = memory_need(config);
  // 288 GB of device memory and a slab as large are addresses; five small layers are not.
  EXPECT_GT(need.weights, 20 * kMiB);
  EXPECT_LT(need.weights, 80 * kMiB);
  EXPECT_EQ(need.rope, 2 * 4096 * 64 * 4);
  EXPECT_LT(need.total(), 1024 * kMiB);

  config.model.n_routed_experts = 4096;  // beside a shared one: never read
  EXPECT_EQ(memory_need(config).weights, need.weights);
  config.workload.groups[0].count = 8;
  EXPECT_EQ(memory_need(config).kv_cache, 4 * need.kv_cache);
  config.limits.max_num_seqs = 2;
  EXPECT_EQ(memory_need(config).kv_cache, need.kv_cache);
  config.limits.kv_pool_bytes = 1000;
  EXPECT_EQ(memory_need(config).kv_cache, 1000);
  config.limits.max_model_len = 1 << 30;  // beyond the tables: as far as they go
  EXPECT_EQ(memory_need(config).rope, 2 * 65536 * 16 * 64 * 4);
}

TEST(MachineMemory, IsEnoughOrNot) {
  const scenario::Resolved config = config_on("cpu");
  const std::int64_t need = memory_need(config).total();
  EXPECT_NO_THROW(check_fits(config, 1, need));
  EXPECT_NO_THROW(check_fits(config, 4, 4 * need));
  EXPECT_THROW(check_fits(config, 4, 4 * need - 4), TooLarge);
  try {
    check_fits(config, 2, need);
    FAIL();
  } catch (const TooLarge& error) {
    EXPECT_EQ(error.needed, 2 * need);
    EXPECT_EQ(error.available, need);
    const std::string what = error.what();
    EXPECT_NE(what.find(std::to_string(2 * need)), std::string::npos) << what;
    EXPECT_NE(what.find(std::to_string(need) + " are available"), std::string::npos) << what;
  }
}

TEST(MachineMemory, NothingIsAskedWhereNothingIsExecutedOrTheEngineRefuses) {
  EXPECT_NO_THROW(check_fits(config_on("meta"), 1, 0));
  EXPECT_NO_THROW(check_fits(config_on("abacus"), 1, 0));
  scenario::Resolved config = config_on("cpu");
  config.parallel.tp = 3;
  EXPECT_NO_THROW(check_fits(config, 1, 0));
}

TEST(MachineMemory, ThisMachineHasSome) {
  EXPECT_GT(available_memory(), 0);
  EXPECT_LT(available_memory(), std::int64_t{1} << 50);
}

}  // namespace
}  // namespace warmgate::engine
