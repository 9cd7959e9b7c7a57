// Every sample of fixtures/logs is read as its sidecar says.
#include <yaml-cpp/yaml.h>

#include "harness/explain/test_logs.h"

namespace warmgate::explain {
namespace {

#define NEEDS_RE2() \
  if (!available()) GTEST_SKIP() << availability()

class Samples : public testing::TestWithParam<std::string> {};

std::string sidecar(const std::string& name) {
  return file_text(fixtures_dir() / "logs" / (name + ".yaml"));
}

TEST_P(Samples, AreReadAsTheirSidecarsSay) {
  NEEDS_RE2();
  const Reading reading = read_log(sample(GetParam()));
  expect_reading(reading, sidecar(GetParam()));
  EXPECT_EQ(reading.unplaced, 0) << reading.unplaced_lines.front().text;
  EXPECT_EQ(reading.lines, YAML::Load(sidecar(GetParam()))["lines"].as<int>());
}

TEST_P(Samples, LinesAddUpHoweverTheyAreWritten) {
  NEEDS_RE2();
  const std::string plain = sample(GetParam());
  const std::int64_t blank = read_log(plain).blank;
  std::string text = plain;
  // Bars are drawn again within a line, and a line that has no place may hold several pieces.
  text.insert(text.find('\n') + 1,
              "\n\nnobody knows this\rnor this\n\r\n   \n 1%|x| 1/9\r 2%|x| 2/9\n");
  text += "neither this";
  for (const std::string& all : {plain, text}) {
    const Reading r = read_log(all);
    EXPECT_EQ(r.lines, r.placed + r.serving + r.unplaced + r.blank);
  }
  EXPECT_EQ(read_log(text).blank, blank + 4);
  EXPECT_EQ(read_log(text).unplaced, 2);
}

TEST_P(Samples, ReadTheSameInPiecesOfAnySize) {
  NEEDS_RE2();
  const std::string text = sample(GetParam());
  const std::string whole = to_json(read_log(text)).dump();
  for (const std::size_t piece : {1u, 7u, 4096u}) {
    EXPECT_EQ(to_json(read_log(text, piece)).dump(), whole) << piece << " bytes at a time";
  }
}

TEST_P(Samples, VersionIsWhatTheLogPrints) {
  NEEDS_RE2();
  static const std::map<std::string, std::string> printed = {
      {"01-vllm-healthy-tp2-cold", "0.24.0"},
      {"02-vllm-v0-healthy", "0.6.4"},
      {"10-llamacpp-healthy-hybrid", "7900"},
      {"11-trtllm-two-pass-healthy", "1.2.0"}};
  const Reading reading = read_log(sample(GetParam()));
  const auto it = printed.find(GetParam());
  if (it == printed.end()) {
    EXPECT_EQ(reading.version, std::nullopt);
  } else {
    EXPECT_EQ(reading.version, it->second);
  }
}

INSTANTIATE_TEST_SUITE_P(Logs, Samples, testing::ValuesIn(samples()), [](const auto& given) {
  std::string name = given.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(SampleList, IsThere) { EXPECT_GE(samples().size(), 12u); }

}  // namespace
}  // namespace warmgate::explain
