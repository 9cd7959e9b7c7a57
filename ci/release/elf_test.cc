#include "ci/release/elf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace warmgate::release {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

// Ubuntu 22.04 has 2.35, Debian 12 2.36, Ubuntu 24.04 2.39.
constexpr const char* kGlibc = "2.34";

fs::path program(const char* name) { return fs::path(std::getenv("WARMGATE_BIN_DIR")) / name; }

TEST(Portable, ProgramsNeedNothingBeyondGlibc) {
  for (const char* name : {"warmgate", "warmgate-engine"}) {
    EXPECT_THAT(obstacles(read_needs(program(name)), kGlibc), IsEmpty()) << name;
  }
}

// What is loaded into other people's programs has the least right to bring anything along.
TEST(Portable, TheProbesNeedNothingBeyondGlibc) {
  for (const char* name : {"../lib/libwarmgate_probe.so", "../lib/libwarmgate_nccl.so"}) {
    Needs needs = read_needs(program(name));
    EXPECT_EQ(needs.interpreter, "") << "a library has none";
    needs.interpreter = "/lib64/ld-linux-x86-64.so.2";
    EXPECT_THAT(obstacles(needs, kGlibc), IsEmpty()) << name;
  }
}

TEST(Portable, AnOrdinaryProgramIsSeenThrough) {
  const Needs own = read_needs("/proc/self/exe");
  EXPECT_THAT(own.libraries, Contains("libstdc++.so.6"));
  EXPECT_THAT(obstacles(own, kGlibc), Contains("needs libstdc++.so.6"));
  EXPECT_THAT(obstacles(own, kGlibc), Contains(HasSubstr("GLIBCXX_")));
  // Held against an older system, its glibc is too new.
  EXPECT_THAT(obstacles(own, "2.2"), Contains(HasSubstr("needs GLIBC_2.")));
}

TEST(Portable, VersionsCompareAsNumbers) {
  Needs needs;
  needs.interpreter = "/lib64/ld-linux-x86-64.so.2";
  needs.libraries = {"libc.so.6", "libgcc_s.so.1"};
  needs.versions = {{"libc.so.6", "GLIBC_2.4"},
                    {"libc.so.6", "GLIBC_2.2.5"},
                    {"libc.so.6", "GLIBC_2.34"},
                    {"libgcc_s.so.1", "GCC_3.3.1"}};
  EXPECT_THAT(obstacles(needs, kGlibc), IsEmpty());
  for (const char* version : {"GLIBC_2.35", "GLIBC_2.34.1", "GLIBC_3", "GLIBC_PRIVATE", "GLIBC_"}) {
    Needs more = needs;
    more.versions.emplace("libc.so.6", version);
    EXPECT_EQ(obstacles(more, kGlibc).size(), 1u) << version;
  }
  needs.versions.emplace("libgcc_s.so.1", "GCC_12.0.0");
  needs.search_path = true;
  EXPECT_EQ(obstacles(needs, kGlibc).size(), 2u);
}

TEST(Portable, WhatIsNoProgramIsRefused) {
  const fs::path folder = fs::path(testing::TempDir()) / ("elf_test." + std::to_string(::getpid()));
  fs::create_directories(folder);
  std::ifstream in("/proc/self/exe", std::ios::binary);
  std::string head(4096, '\0');
  in.read(head.data(), static_cast<std::streamsize>(head.size()));
  for (const std::size_t length : {0u, 3u, 63u, 64u, 200u, 4096u}) {
    std::ofstream(folder / "cut", std::ios::binary) << head.substr(0, length);
    EXPECT_THROW(read_needs(folder / "cut"), std::runtime_error) << length;
  }
  std::ofstream(folder / "text") << std::string(4096, 'x');
  EXPECT_THROW(read_needs(folder / "text"), std::runtime_error);
  EXPECT_THROW(read_needs(folder / "none"), std::runtime_error);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace warmgate::release
