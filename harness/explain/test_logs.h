// For tests: the grammars of the fixtures, the sample logs and what their sidecars expect.
#pragma once

#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "harness/explain/reader.h"

namespace warmgate::explain {

inline std::filesystem::path fixtures_dir() {
  const char* root = std::getenv("WARMGATE_SOURCE_DIR");
  return std::filesystem::path(root ? root : ".") / "fixtures";
}

inline std::string file_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

inline const Grammars& grammars() {
  static const Grammars all = Grammars::load(fixtures_dir() / "servers" / "log");
  return all;
}

/// Samples by the names of their files, without .log.
inline std::vector<std::string> samples() {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(fixtures_dir() / "logs")) {
    if (entry.path().extension() == ".log") out.push_back(entry.path().stem().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}
inline std::string sample(const std::string& name) {
  return file_text(fixtures_dir() / "logs" / (name + ".log"));
}

/// Reads a log that is fed in pieces of `piece` bytes (0 = all at once).
inline Reading read_log(const std::string& text, std::size_t piece = 0, const Ending& ending = {}) {
  Reader reader(grammars());
  const int source = reader.add_source("log");
  if (piece == 0) piece = std::max<std::size_t>(text.size(), 1);
  for (std::size_t at = 0; at < text.size(); at += piece) {
    reader.feed(source, std::string_view(text).substr(at, piece));
  }
  return reader.finish(ending);
}

inline nlohmann::json yaml_value(const YAML::Node& node) {
  if (node.IsNull()) return nullptr;
  if (node.IsSequence()) {
    nlohmann::json out = nlohmann::json::array();
    for (const YAML::Node& item : node) out.push_back(yaml_value(item));
    return out;
  }
  // Quoted scalars have the tag "!": they are text even if they look like a number.
  double number = 0;
  if (node.Tag() != "!" && YAML::convert<double>::decode(node, number)) return number;
  return node.as<std::string>();
}

/// Equal as far as it is printed: a figure of two decimals to half of the last one.
inline bool same_value(const nlohmann::json& got, const nlohmann::json& want,
                       const std::string& printed) {
  if (!want.is_number() || !got.is_number()) return got == want;
  const std::size_t dot = printed.find('.');
  const std::size_t decimals = dot == std::string::npos ? 0 : printed.size() - dot - 1;
  const double half = 0.5 * std::pow(10.0, -static_cast<double>(decimals));
  return std::abs(got.get<double>() - want.get<double>()) <= half * 1.0001;
}

/// Holds a reading against a sidecar; `changes` replaces expected values (figures by name, the
/// others by theirs, fingerprint.type and so on with a dot).
inline void expect_reading(const Reading& reading, const std::string& sidecar_text,
                           const std::map<std::string, nlohmann::json>& changes = {}) {
  const YAML::Node sidecar = YAML::Load(sidecar_text);
  const YAML::Node expected = sidecar["expected"];
  const nlohmann::json got = to_json(reading);
  const auto want = [&](const std::string& name, const YAML::Node& node) {
    const auto change = changes.find(name);
    return change == changes.end() ? yaml_value(node) : change->second;
  };
  EXPECT_EQ(got["engine"], want("engine", sidecar["engine"]));
  for (const char* name :
       {"outcome", "last_phase", "failing_phase", "failing_worker", "failing_rank"}) {
    ASSERT_TRUE(expected[name].IsDefined()) << name;
    EXPECT_EQ(got[name], want(name, expected[name])) << name;
  }
  if (expected["fingerprint"]) {
    ASSERT_TRUE(reading.fingerprint);
    for (const char* name : {"type", "function", "file"}) {
      EXPECT_EQ(got["fingerprint"][name],
                want(std::string("fingerprint.") + name, expected["fingerprint"][name]))
          << name;
    }
  } else {
    EXPECT_TRUE(got["fingerprint"].is_null());
  }
  for (const auto& figure : expected["figures"]) {
    const auto name = figure.first.as<std::string>();
    const nlohmann::json value = want(name, figure.second);
    ASSERT_TRUE(got["figures"].contains(name)) << name << " is not among " << got["figures"].dump();
    EXPECT_TRUE(same_value(got["figures"][name], value, figure.second.as<std::string>()))
        << name << ": " << got["figures"][name] << " instead of " << value;
  }
}

}  // namespace warmgate::explain
