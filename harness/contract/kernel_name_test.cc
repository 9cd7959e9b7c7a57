#include "harness/contract/kernel_name.h"

#include <gtest/gtest.h>

namespace warmgate::contract {
namespace {

TEST(KernelName, IsWhatPeopleSay) {
  EXPECT_EQ(kernel_name("_Z14spins_for_everPVi"), "spins_for_ever");
  EXPECT_EQ(kernel_name("_ZN2at6native18elementwise_kernelILi128ELi4EEEviT0_"),
            "at::native::elementwise_kernel");
  EXPECT_EQ(kernel_name("_ZN12_GLOBAL__N_13addEPfif"), "{anonymous}::add");
  EXPECT_EQ(kernel_name("compress"), "compress");
}

TEST(KernelName, WhatIsNoMangledNameStaysAsItIs) {
  EXPECT_EQ(kernel_name(""), "");
  EXPECT_EQ(kernel_name("_Z"), "_Z");
  EXPECT_EQ(kernel_name("_Znonsense<((("), "_Znonsense<(((");
  EXPECT_EQ(kernel_name(std::string(200, 'x')).size(), 80u);
  EXPECT_EQ(kernel_name("_Z" + std::string(5000, '1')).size(), 80u);
}

}  // namespace
}  // namespace warmgate::contract
