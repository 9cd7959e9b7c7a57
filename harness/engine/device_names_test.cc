// Only ops/ names devices: layers, phases, allocators and dispatch call ops and cannot tell one
// device from another.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>

namespace {

namespace fs = std::filesystem;

// What remains of a line of code without its comment. Names inside strings count: a name compared
// with is a name.
std::string without_comment(const std::string& line) { return line.substr(0, line.find("//")); }

std::vector<std::string> offences(const fs::path& root) {
  static const std::regex device(
      R"((^|[^A-Za-z0-9_/.])(meta|cpu|cuda|is_meta|is_cpu|is_cuda)([^A-Za-z0-9_/]|$))",
      std::regex::icase);
  std::vector<std::string> out;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    const fs::path& path = entry.path();
    const std::string ending = path.extension(), folder = path.parent_path().filename();
    if ((ending != ".cc" && ending != ".h") || folder == "ops") continue;
    if (path.filename().string().find("_test.") != std::string::npos) continue;
    std::ifstream in(path);
    std::string line;
    for (int number = 1; std::getline(in, line); ++number) {
      if (std::regex_search(without_comment(line), device))
        out.push_back(path.string() + ":" + std::to_string(number) + ": " + line);
    }
  }
  return out;
}

TEST(DeviceNames, OnlyOpsNamesDevices) {
  const char* source = std::getenv("WARMGATE_SOURCE_DIR");
  ASSERT_NE(source, nullptr);
  const auto found = offences(fs::path(source) / "harness/engine");
  for (const std::string& offence : found) ADD_FAILURE() << offence;
}

TEST(DeviceNames, TheTestSeesWhatItIsFor) {
  const fs::path dir = fs::temp_directory_path() / ("warmgate-names-" + std::to_string(::getpid()));
  fs::create_directories(dir / "layers");
  fs::create_directories(dir / "ops");
  std::ofstream(dir / "layers/a.cc") << "// meta is fine here\nif (device == \"meta\") return;\n"
                                        "int metadata = 0;  // so is metadata\n";
  std::ofstream(dir / "ops/b.cc") << "if (device == \"cuda\") return;\n";
  const auto found = offences(dir);
  fs::remove_all(dir);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NE(found[0].find("a.cc:2:"), std::string::npos);
}

}  // namespace
