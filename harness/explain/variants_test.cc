// The samples again, as other machines would have stored them: other wrappers, other numbers, other
// ranks. What is expected changes with them, so nothing can be known by heart.
#include <fmt/format.h>

#include "harness/explain/test_logs.h"

namespace warmgate::explain {
namespace {

#define NEEDS_RE2() \
  if (!available()) GTEST_SKIP() << availability()

struct Wrapper {
  const char* name;
  std::string (*wrap)(int number, const std::string& line);
};

const std::vector<Wrapper>& wrappers() {
  static const std::vector<Wrapper> all = {
      {"docker",
       [](int n, const std::string& line) {
         return fmt::format("2026-07-08T22:40:{:02}.166647879Z {}", n % 60, line);
       }},
      {"compose", [](int, const std::string& line) { return "engine-1  | " + line; }},
      {"compose_brackets", [](int, const std::string& line) { return "[engine]     | " + line; }},
      {"compose_of_docker",
       [](int n, const std::string& line) {
         return fmt::format("engine-1  | 2026-07-08T22:40:{:02}.1666478Z {}", n % 60, line);
       }},
      {"kubectl",
       [](int n, const std::string& line) {
         return fmt::format("[pod/engine-0/main] 2026-07-08T22:40:{:02}Z {}", n % 60, line);
       }},
      {"cri",
       [](int n, const std::string& line) {
         return fmt::format("2026-07-08T22:40:{:02}.166647879Z stderr F {}", n % 60, line);
       }},
      {"journald",
       [](int n, const std::string& line) {
         return fmt::format("Jul  8 22:40:{:02} gpu-07 python3[4711]: {}", n % 60, line);
       }},
      {"journald_in_russian",
       [](int n, const std::string& line) {
         return fmt::format("июл 08 22:40:{:02} gpu-07 docker[4711]: {}", n % 60, line);
       }},
      {"journald_iso",
       [](int n, const std::string& line) {
         return fmt::format("2026-07-28T20:08:{:02}.809061-04:00 gpu-07 python3[4711]: {}", n % 60,
                            line);
       }},
      {"buildkite",
       [](int n, const std::string& line) {
         return fmt::format("[2025-03-10T15:07:{:02}Z]   | {}", n % 60, line);
       }},
      {"buildkite_marks",
       [](int n, const std::string& line) {
         return fmt::format("\x1b_bk;t=1741619220{:03}\a{}", n, line);
       }},
      {"torchserve",
       [](int n, const std::string& line) {
         return fmt::format("2024-09-13T22:25:{:02},532 [WARN ] W-9000-m-stderr MODEL_LOG - {}",
                            n % 60, line);
       }},
      {"srun", [](int, const std::string& line) { return "3: " + line; }},
      {"terminal", [](int, const std::string& line) { return fmt::format("│ {:<300} │", line); }},
      {"json",
       [](int, const std::string& line) {
         return nlohmann::json({{"log", line + "\n"}, {"stream", "stderr"}}).dump();
       }},
      {"colours", [](int, const std::string& line) { return "\x1b[1;32m" + line + "\x1b[0m"; }},
      {"crlf", [](int, const std::string& line) { return line + "\r"; }},
      {"nobody_knows_it",
       [](int n, const std::string& line) {
         return fmt::format("web-7f <{:02}> {}", n % 60, line);
       }},
  };
  return all;
}

std::string wrapped(const std::string& text, const Wrapper& wrapper) {
  std::istringstream in(text);
  std::string out;
  int number = 0;
  for (std::string line; std::getline(in, line);) out += wrapper.wrap(number++, line) + "\n";
  return out;
}

class Wrapped : public testing::TestWithParam<Wrapper> {};

TEST_P(Wrapped, SamplesSayTheSame) {
  NEEDS_RE2();
  for (const std::string& name : samples()) {
    SCOPED_TRACE(name);
    expect_reading(read_log(wrapped(sample(name), GetParam())),
                   file_text(fixtures_dir() / "logs" / (name + ".yaml")));
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Wrapped, testing::ValuesIn(wrappers()),
                         [](const auto& given) { return std::string(given.param.name); });

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

struct Change {
  std::string from, to;
};
struct Variant {
  std::string sample;
  std::vector<Change> log, sidecar;
};

TEST(Variants, OtherNumbersRanksAndNames) {
  NEEDS_RE2();
  const std::vector<Variant> variants = {
      {"01-vllm-healthy-tp2-cold",
       {{"21.40 GiB", "33.25 GiB"},
        {"280,480", "1,280,481"},
        {"5.402118", "61.5"},
        {"6.85x", "31.27x"}},
       {{"21.4\n", "33.25\n"}, {"280480", "1280481"}, {"5.402118", "61.5"}, {"6.85", "31.27"}}},
      {"03-vllm-kv-too-small-pp4",
       {{"EngineCore_DP0", "EngineCore"}, {"(18.00 GiB", "(20.50 GiB"}, {"44992", "40000"}},
       {{"EngineCore_DP0", "EngineCore"}, {"18.0", "20.5"}, {"44992", "40000"}}},
      {"04-vllm-sampler-oom-rank1",
       {{"rank=1 pid=42", "rank=9 pid=9"}, {"rank=0 pid=41", "rank=1 pid=42"}, {"150.00", "75.50"}},
       {{"rank=1", "rank=9"}, {"failing_rank: 1", "failing_rank: 9"}, {"150.0", "75.5"}}},
      {"04-vllm-sampler-oom-rank1",
       {{"(VllmWorker rank=1 ", "(EngineCore_0 pid=7) (VllmWorker TP1 "}},
       {{"rank=1", "TP1"}}},
      {"05-vllm-capture-illegal-access-ansi",
       {{" 13/51 ", " 50/51 "}, {"8.4400 GiB", "8.0625 GiB"}},
       {{"graphs_done: 13", "graphs_done: 50"}, {"8.44", "8.0625"}}},
      {"06-vllm-hang-after-kv",
       {{"10:02:15", "10:04:25"}},
       {{"silent_seconds: 120", "silent_seconds: 250"}}},
      {"07-sglang-healthy-tp2",
       {{"13:00:39]", "13:00:59]"}, {"13.90 s", "20.10 s"}},
       {{"13:00:39", "13:00:59"}, {"17.54", "23.74"}}},
      {"08-sglang-load-victim-rank",
       {{" TP2]", " TP7]"}, {" TP0]", " TP2]"}},
       {{"'TP2'", "'TP7'"}, {"failing_rank: 2", "failing_rank: 7"}}},
      {"09-llamacpp-kv-oom-device",
       {{"device 1:", "device 0:"}, {"12288.00", "9216.25"}},
       {{"device 1", "device 0"}, {"failing_rank: 1", "failing_rank: 0"}, {"12288.0", "9216.25"}}},
      {"10-llamacpp-healthy-hybrid",
       {{"301.50", "150.25"}, {"n_slots = 4", "n_slots = 1"}},
       {{"301.5", "150.25"}, {"slots: 4", "slots: 1"}}},
      {"11-trtllm-two-pass-healthy",
       {{"54.00 GiB for", "40.50 GiB for"}, {"(442368)", "(331776)"}},
       {{"54.0", "40.5"}, {"442368", "331776"}}},
      {"12-tgi-capture-oom-tp2",
       {{"blocks: 64512, size: 1", "blocks: 4032, size: 16"}, {"36.81s", "99.01s"}},
       {{"36.81", "99.01"}}},
  };
  for (const Variant& variant : variants) {
    SCOPED_TRACE(variant.sample);
    std::string log = sample(variant.sample);
    std::string sidecar = file_text(fixtures_dir() / "logs" / (variant.sample + ".yaml"));
    for (const Change& change : variant.log) {
      ASSERT_NE(log.find(change.from), std::string::npos) << change.from;
      log = replaced(log, change.from, change.to);
    }
    for (const Change& change : variant.sidecar) {
      ASSERT_NE(sidecar.find(change.from), std::string::npos) << change.from;
      sidecar = replaced(sidecar, change.from, change.to);
    }
    expect_reading(read_log(log), sidecar);
  }
}

TEST(Variants, AHealthyLogCutAnywhereIsNoCrash) {
  NEEDS_RE2();
  for (const std::string& name : samples()) {
    if (name.find("healthy") == std::string::npos) continue;
    const std::string text = sample(name);
    for (std::size_t part = 1; part <= 6; ++part) {
      const Reading reading = read_log(text.substr(0, text.size() * part / 8));
      EXPECT_EQ(reading.outcome, "incomplete") << name << " " << part << "/8";
      EXPECT_EQ(reading.fingerprint, std::nullopt) << name;
    }
  }
}

TEST(Variants, TheTimelineRecurs) {
  NEEDS_RE2();
  const Reading reading = read_log(sample("11-trtllm-two-pass-healthy"));
  std::vector<std::string> phases;
  for (const PhaseSpan& span : reading.phases) phases.push_back(span.phase);
  EXPECT_EQ(phases, (std::vector<std::string>{"bootstrap", "load", "kv", "warmup", "capture",
                                              "profile", "kv", "warmup", "capture", "ready"}));
}

}  // namespace
}  // namespace warmgate::explain
