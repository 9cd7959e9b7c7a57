// For tests: files in a folder of their own, and problems as text.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "harness/scenario/scenario.h"

namespace warmgate::scenario {

class TestFiles : public ::testing::Test {
 protected:
  TestFiles() {
    std::string pattern = (std::filesystem::temp_directory_path() / "warmgate-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~TestFiles() override {
    std::error_code error;
    std::filesystem::remove_all(folder_, error);
  }

  std::filesystem::path write(const std::string& name, const std::string& text) {
    const auto path = folder_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  /// The problems of loading s.yaml with this text, one a line, without the folder; "" if it loads.
  std::string problems(const std::string& text, const LoadOptions& options = {}) {
    return problems_of(write("s.yaml", text), options);
  }
  std::string problems_of(const std::filesystem::path& file, const LoadOptions& options = {}) {
    try {
      (void)load_scenario(file, options);
      return "";
    } catch (const ScenarioError& error) {
      std::string out = error.what();
      const std::string prefix = folder_.string() + "/";
      for (std::size_t at = 0; (at = out.find(prefix, at)) != std::string::npos;) {
        out.erase(at, prefix.size());
      }
      return out;
    }
  }
  Scenario load(const std::string& text, const LoadOptions& options = {}) {
    return load_scenario(write("s.yaml", text), options);
  }

  static std::filesystem::path source() {
    const char* root = std::getenv("WARMGATE_SOURCE_DIR");
    return root ? root : ".";
  }

  /// A native scenario that loads; lines may follow.
  static constexpr const char* kSmall =
      "scenario: small\n"                                               // 1
      "model: {preset: small-dspark}\n"                                 // 2
      "limits: {max_model_len: 4096, device_memory_bytes: 80 GiB}\n"    // 3
      "workload: {requests: 1, prompt_tokens: 8, output_tokens: 4}\n";  // 4

  std::filesystem::path folder_;
};

}  // namespace warmgate::scenario
