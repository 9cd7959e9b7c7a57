// Each entry of fixtures/known recognises the log it carries, and not the one that is only like it;
// each cause of fixtures/outside shows in the lines it carries.
#include <gtest/gtest.h>

#include <set>

#include "harness/explain/answer.h"
#include "harness/explain/reader.h"
#include "harness/scenario/test_files.h"

namespace warmgate::explain {
namespace {

std::filesystem::path fixtures() {
  const char* root = std::getenv("WARMGATE_SOURCE_DIR");
  return std::filesystem::path(root ? root : ".") / "fixtures";
}

const KnownSet& entries() {
  static const KnownSet set = [] {
    KnownSet out;
    scenario::Problems problems;
    out.read_folder(fixtures() / "known", false, problems);
    problems.throw_if_any();
    return out;
  }();
  return set;
}

Reading read(const std::string& log) {
  static const Grammars grammars = Grammars::standard(fixtures());
  Reader reader(grammars);
  const int source = reader.add_source("log");
  reader.feed(source, log);
  return reader.finish();
}

std::set<std::string> known_in(const Reading& reading) {
  std::set<std::string> out;
  for (const KnownMatch& match : entries().match(symptom_of(reading)))
    out.insert(match.known->name);
  return out;
}

std::string shown(const Reading& reading) { return to_json(reading).dump(1); }

TEST(KnownEntries, ThereAreSome) { EXPECT_GE(entries().entries().size(), 25u); }

TEST(KnownEntries, EachRecognisesItsLog) {
  if (!available()) GTEST_SKIP() << availability();
  for (const Known& known : entries().entries()) {
    const Reading reading = read(known.log);
    EXPECT_EQ(known_in(reading).count(known.name), 1u) << known.where << "\n" << shown(reading);
  }
}

TEST(KnownEntries, NoneRecognisesItsNearMiss) {
  if (!available()) GTEST_SKIP() << availability();
  for (const Known& known : entries().entries()) {
    const Reading reading = read(known.near_miss);
    EXPECT_EQ(known_in(reading).count(known.name), 0u) << known.where << "\n" << shown(reading);
    // A near miss has to be of the same engine and to fail, else it misses by a mile.
    EXPECT_NE(std::count(known.engine.begin(), known.engine.end(), reading.engine), 0)
        << known.where << ": " << reading.engine;
  }
}

TEST(KnownEntries, HealthyLogsAreNotKnown) {
  if (!available()) GTEST_SKIP() << availability();
  std::size_t read_logs = 0;
  for (const auto& file : std::filesystem::directory_iterator(fixtures() / "logs")) {
    if (file.path().extension() != ".log") continue;
    std::ifstream in(file.path(), std::ios::binary);
    const Reading reading = read({std::istreambuf_iterator<char>(in), {}});
    // The samples are of no public regression.
    EXPECT_TRUE(known_in(reading).empty()) << file.path();
    ++read_logs;
  }
  EXPECT_GE(read_logs, 12u);
}

TEST(KnownEntries, ALogOfAnotherVersionIsNotKnown) {
  if (!available()) GTEST_SKIP() << availability();
  const auto it = std::find_if(entries().entries().begin(), entries().entries().end(),
                               [](const Known& known) { return known.name == "vllm-50615"; });
  ASSERT_NE(it, entries().entries().end());
  std::string log = it->log;
  for (std::size_t at; (at = log.find("0.26.1rc1.dev77+g6f91edf96")) != std::string::npos;)
    log.replace(at, 26, "0.28.0");
  EXPECT_EQ(known_in(read(log)).count("vllm-50615"), 0u);
}

// An exception comes with a traceback, whose prefix is that of its line.
std::string with_traceback(const std::string& line) {
  const std::size_t prefix = line.find(") ");
  const std::size_t colon = line.find(": ");
  if (line[0] != '(' || prefix == std::string::npos || colon == std::string::npos ||
      line.find(' ', prefix + 2) != colon + 1)
    return line;
  const std::string who = line.substr(0, prefix + 2);
  return who + "Traceback (most recent call last):\n" + who +
         "  File \"/opt/vllm/v1/worker/gpu_worker.py\", line 7, in init_device\n" + who +
         "    begin()\n" + line;
}

TEST(OutsideCauses, EachShowsInItsExamples) {
  if (!available()) GTEST_SKIP() << availability();
  OutsideRules rules;
  scenario::Problems problems;
  rules.read_folder(fixtures() / "outside", problems);
  problems.throw_if_any();
  // A start that is still loading; what comes from outside is the last thing in its log.
  const std::string begun =
      "(APIServer pid=11) INFO 07-02 09:00:01 [api_server.py:1890] vLLM API server version 0.24.0\n"
      "(EngineCore pid=23) INFO 07-02 09:00:17 [gpu_model_runner.py:5120] Starting to load model "
      "example/m...\n";
  std::size_t examples = 0;
  for (const OutsideRule& rule : rules.rules()) {
    for (const std::string& example : rule.examples) {
      const Reading reading = read(begun + with_traceback(example) + "\n");
      const Answer answer = answer_of(reading, {}, rules, KnownSet());
      EXPECT_EQ(answer.kind, Answer::Kind::kInfrastructure) << rule.name << ": " << example;
      const bool named =
          std::any_of(answer.outside.begin(), answer.outside.end(),
                      [&](const OutsideCause& cause) { return cause.rule->name == rule.name; });
      EXPECT_TRUE(named) << rule.name << ": " << example << "\n" << shown(reading);
      ++examples;
    }
  }
  EXPECT_GE(examples, 30u);
}

}  // namespace
}  // namespace warmgate::explain
