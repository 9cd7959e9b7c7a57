#include "harness/target/server/late_kernel.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "harness/target/test_support.h"

namespace warmgate::target {
namespace {

namespace fs = std::filesystem;
using testing::TempDir;

TEST(LateKernel, ByFileNamesWhereTheySayIt) {
  const std::string digest = "ABCD2EFGHIJ3KLMNOPQ4RSTUVWX5YZABCD6EFG";
  EXPECT_EQ(kernel_of("h1/_topk_topp_kernel.cubin"), "_topk_topp_kernel");
  EXPECT_EQ(kernel_of("h1/__grp__add.json"), "add");
  EXPECT_EQ(kernel_of("kernel.gemm_fp8/kernel.cubin"), "kernel.gemm_fp8");
  // torch's inductor: its Triton kernels are named, its graphs and sources are digests.
  EXPECT_EQ(kernel_of("inductor/triton/0/" + digest + "/triton_poi_fused_add_0.ptx"),
            "triton_poi_fused_add_0");
  EXPECT_EQ(kernel_of("torchinductor_root/fxgraph/ab/" + digest + "/" + digest), "fxgraph");
  EXPECT_EQ(
      kernel_of("torchinductor_root/zx/c5xcvbsxlhkx6vkkbrqmaz3zyxykm2qhrlebjrbbvqlomtqqbnhr.py"),
      "torchinductor_root");
  // vLLM's.
  EXPECT_EQ(
      kernel_of("torch_compile_cache/c0d90f99fa/rank_0_0/backbone/artifact_compile_range_1_8192"),
      "artifact_compile_range_1_8192");
  EXPECT_EQ(kernel_of("torch_compile_cache/c0d90f99fa/rank_0_0/computation_graph.py"),
            "computation_graph");
  EXPECT_EQ(kernel_of(digest), digest) << "nothing above it";
  EXPECT_EQ(kernel_of("ab/00/" + digest), digest);
  EXPECT_EQ(kernel_of(".lock"), ".lock");
  EXPECT_FALSE(kernel_of("").empty() && kernel_of("x").empty());
}

TEST(LateKernel, WhichFilesHaveASideFile) {
  EXPECT_EQ(side_file_of("h2/add.cubin"), "h2/add.json");
  EXPECT_EQ(side_file_of("h2/add.json"), "h2/add.json");
  EXPECT_EQ(side_file_of("h2/__grp__add.json"), "h2/add.json");
  EXPECT_EQ(side_file_of("add.ttgir"), "add.json");
  EXPECT_EQ(side_file_of("h2/add.so"), "");
  EXPECT_EQ(side_file_of("h2.cubin/add"), "");
  EXPECT_EQ(side_file_of(".cubin"), "");
  EXPECT_EQ(side_file_of(""), "");
}

class SideFile : public ::testing::Test {
 protected:
  LateKernel with(const std::string& text) {
    fs::create_directories(dir_.path() / "h");
    std::ofstream(dir_.path() / "h/add.json") << text;
    return late_kernel(dir_.path(), "h/add.cubin");
  }
  TempDir dir_;
};

TEST_F(SideFile, NamesTheKernelAndItsArchitecture) {
  const LateKernel kernel =
      with(R"({"hash": "x", "target": {"backend": "cuda", "arch": 90}, "name": "add_0d1d2"})");
  EXPECT_EQ(kernel.name, "add_0d1d2");
  EXPECT_EQ(kernel.arch, "sm_90");
  EXPECT_EQ(with(R"({"name": "k", "target": {"arch": "gfx942"}})").arch, "gfx942");
  EXPECT_EQ(with(R"({"name": "k"})").arch, "");
}

TEST_F(SideFile, WhatIsHostileIsData) {
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[1]"), std::string("null"),
        std::string(R"({"name": 7})"), std::string(R"({"name": ""})"), std::string("\xff\xfe"),
        std::string(70 << 10, ' ') + R"({"name": "far"})", std::string(60000, '[')}) {
    const LateKernel kernel = with(text);
    EXPECT_EQ(kernel.name, "add") << text.substr(0, 40);
    EXPECT_EQ(kernel.arch, "");
  }
  const LateKernel odd = with(R"({"name": "a\nb\u001b[31m", "target": {"arch": -1}})");
  EXPECT_EQ(odd.name, "a?b?[31m");
  EXPECT_EQ(odd.arch, "");
  EXPECT_EQ(with(R"({"name": "k", "target": {"arch": "a b;rm"}})").arch, "");
  EXPECT_EQ(with("{\"name\": \"" + std::string(5000, 'k') + "\"}").name.size(), 200u);
}

TEST_F(SideFile, NothingButAFileIsRead) {
  fs::create_directories(dir_.path() / "h");
  ASSERT_EQ(::mkfifo((dir_.path() / "h/add.json").c_str(), 0600), 0);
  EXPECT_EQ(late_kernel(dir_.path(), "h/add.cubin").name, "add") << "a pipe would never end";
  std::ofstream(dir_.path() / "secret.json") << R"({"name": "elsewhere"})";
  fs::remove(dir_.path() / "h/add.json");
  fs::create_symlink(dir_.path() / "secret.json", dir_.path() / "h/add.json");
  EXPECT_EQ(late_kernel(dir_.path(), "h/add.cubin").name, "add") << "nor is a link followed";
}

}  // namespace
}  // namespace warmgate::target
