// Layers, phases, allocators and dispatch call ops and never name a device.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>

namespace warmgate::engine {
namespace {

namespace fs = std::filesystem;

// Code of a file, comments removed; strings stay, since a device's name in one is a name too.
std::string code_of(const fs::path& path) {
  std::ifstream in(path);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  static const std::regex comment(R"re(//[^\n]*)re");
  return std::regex_replace(text, comment, "");
}

bool names_a_device(const std::string& code) {
  static const std::regex word(R"re(\b(meta|cpu|cuda|Meta|Cpu|Cuda)\b)re");
  return std::regex_search(code, word);
}

TEST(Devices, AreNamedInOpsOnly) {
  const char* root = std::getenv("WARMGATE_SOURCE_DIR");
  const fs::path engine = fs::path(root != nullptr ? root : ".") / "harness/engine";
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(engine)) {
    const std::string name = entry.path().filename();
    if (entry.path().extension() != ".cc" && entry.path().extension() != ".h") continue;
    if (name.ends_with("_test.cc") || name == "testing.h") continue;
    if (entry.path().parent_path().filename() == "ops") continue;
    ++files;
    EXPECT_FALSE(names_a_device(code_of(entry.path()))) << entry.path();
  }
  EXPECT_GT(files, 30);
}

TEST(Devices, TheSearchFinds) {
  EXPECT_TRUE(names_a_device("if (device == \"meta\") return;"));
  EXPECT_TRUE(names_a_device("cuda::launch();"));
  EXPECT_FALSE(names_a_device("metadata.build(); accuda();"));
}

}  // namespace
}  // namespace warmgate::engine
