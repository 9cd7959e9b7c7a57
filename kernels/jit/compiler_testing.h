// What the tests of the compiler share: a cache folder of each test's own.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "kernels/jit/jit.h"

namespace warmgate::jit {

class CompilerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "warmgate_jit_XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  Compiler cached() const { return Compiler({folder_, Backend::kAuto}); }
  std::vector<std::filesystem::path> entries() const {
    std::vector<std::filesystem::path> out;
    for (const auto& file : std::filesystem::directory_iterator(folder_)) {
      if (file.path().filename() != "lock") out.push_back(file.path());
    }
    return out;
  }
  std::filesystem::path folder_;
};

#define NEEDS_NVRTC() \
  if (!nvrtc().available) GTEST_SKIP() << nvrtc().why_not

}  // namespace warmgate::jit
