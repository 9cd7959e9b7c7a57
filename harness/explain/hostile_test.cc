// Whatever somebody feeds: no crash, bounded memory, valid output.
#include <fmt/format.h>
#include <unistd.h>

#include "harness/explain/test_logs.h"
#include "harness/scenario/scenario.h"

namespace warmgate::explain {
namespace {

#define NEEDS_RE2() \
  if (!available()) GTEST_SKIP() << availability()

// dump() throws where a text is not UTF-8.
std::string dumped(const Reading& reading) { return to_json(reading).dump(); }

std::string noise(std::size_t bytes, unsigned seed) {
  std::string out(bytes, '\0');
  for (char& c : out) {
    seed = seed * 1664525u + 1013904223u;
    c = static_cast<char>(seed >> 24);
  }
  return out;
}

TEST(Hostile, BinaryGarbageIsNoLog) {
  NEEDS_RE2();
  for (const unsigned seed : {1u, 2u, 3u}) {
    const Reading reading = read_log(noise(60'000, seed), 4096);
    EXPECT_EQ(reading.engine, "");
    EXPECT_EQ(reading.outcome, "incomplete");
    EXPECT_FALSE(dumped(reading).empty());
  }
}

TEST(Hostile, GarbageBetweenLinesChangesNoAnswer) {
  NEEDS_RE2();
  for (const std::string& name : samples()) {
    std::istringstream in(sample(name));
    std::string text;
    unsigned seed = 7;
    for (std::string line; std::getline(in, line);) {
      std::string junk = noise(40, ++seed);
      std::replace_if(
          junk.begin(), junk.end(), [](char c) { return c == '\n' || c == '\r'; }, '?');
      text += line + "\n\x01" + junk + "\n";
    }
    const Reading reading = read_log(text);
    EXPECT_EQ(reading.outcome, read_log(sample(name)).outcome) << name;
    EXPECT_FALSE(dumped(reading).empty());
  }
}

TEST(Hostile, ALineOfManyMegabytesIsPassedOver) {
  NEEDS_RE2();
  Reader reader(grammars());
  const int source = reader.add_source("log");
  reader.feed(source,
              "(EngineCore pid=2) INFO 07-02 09:00:58 [k.py:2] GPU KV cache size: 12 tokens\n");
  const std::string part(1 << 20, 'x');
  for (int i = 0; i < 8; ++i) reader.feed(source, part);
  reader.feed(source,
              "\n(EngineCore pid=2) INFO 07-02 09:00:58 [k.py:2] Maximum concurrency for 8 tokens "
              "per request: 1.50x\n");
  const Reading reading = reader.finish();
  EXPECT_EQ(reading.figures.at("kv_tokens"), 12);
  EXPECT_EQ(reading.figures.at("concurrency"), 1.5);
  EXPECT_LT(dumped(reading).size(), 10'000u);
}

TEST(Hostile, ABarThatIsRedrawnForHoursHidesNothing) {
  NEEDS_RE2();
  Reader reader(grammars(), {"vllm"});
  const int source = reader.add_source("log");
  std::int64_t moved = 0;
  reader.on_said([&](const Said& said) { moved += said.what == Said::What::kProgress; });
  for (int i = 0; i <= 1000; ++i) {
    reader.feed(
        source,
        fmt::format(
            "\rCapturing CUDA graphs (decode, FULL):  {}%|##| {}/1000 [00:01<00:01, 9.00it/s]",
            i / 10, i));
  }
  const Reading reading = reader.finish();
  EXPECT_EQ(reading.lines, 1);
  EXPECT_GT(moved, 990);
  EXPECT_EQ(reading.last_phase, "capture");
}

TEST(Hostile, NulsLoneSurrogatesAndControlBytesComeOutAsText) {
  NEEDS_RE2();
  std::string line =
      "(Worker_TP0 pid=1) ERROR 07-02 09:00:01 [a.py:1] ValueError: a\xED\xA0\x80"
      "b\xF8\xC0\xAF";
  line += std::string("c\0d\x07\x9B", 5) + "\n";
  const Reading reading = read_log(
      "(EngineCore pid=3) INFO 07-02 09:00:01 [b.py:1] Available KV cache memory: 1.0 GiB\n" +
      line + line + std::string("\0\0\0", 3));
  EXPECT_FALSE(dumped(reading).empty());
}

TEST(Hostile, AMillionRanksAreTakenTogether) {
  NEEDS_RE2();
  Reader reader(grammars(), {"sglang"});
  const int source = reader.add_source("log");
  std::string text;
  for (int rank = 0; rank < 6'000; ++rank) {
    text += fmt::format(
        "[2025-11-30 13:00:15 TP{}] Load weight end. type=A, avail mem=7.80 GB, mem usage=7.60 "
        "GB.\n",
        rank);
  }
  reader.feed(source, text);
  const Reading reading = reader.finish();
  EXPECT_EQ(reading.figures.at("weights_gib"), 7.6);
  EXPECT_LT(dumped(reading).size(), 500'000u);
}

TEST(Hostile, EndlessFailuresAndTracebacksAreBounded) {
  NEEDS_RE2();
  Reader reader(grammars(), {"vllm"});
  const int source = reader.add_source("log");
  std::string text;
  for (int i = 0; i < 1500; ++i) {
    text += fmt::format(
        "(Worker_TP{} pid={}) ERROR 07-02 09:00:01 [m.py:{}] WorkerProc hit an exception.\n", i, i,
        i);
    text += fmt::format(
        "(Worker_TP{} pid={}) ERROR 07-02 09:00:01 [m.py:{}] Traceback (most recent call last):\n",
        i, i, i);
  }
  for (int i = 0; i < 1500; ++i) text += "  File \"/x/y.py\", line 1, in recurse\n    recurse()\n";
  reader.feed(source, text);
  const Reading reading = reader.finish();
  EXPECT_EQ(reading.outcome, "crashed");
  EXPECT_EQ(reading.failing_worker, "Worker_TP0");
  EXPECT_LT(dumped(reading).size(), 2'000'000u);
}

TEST(Hostile, HostilePrefixesAndStamps) {
  NEEDS_RE2();
  for (const char* line : {"(",
                           "( pid=",
                           "(x pid=99999999999999999999) y",
                           "[",
                           "[2025-99-99 99:99:99 TP9] x",
                           "[]",
                           "{",
                           "{\"log\":5}",
                           "{\"log\":\"",
                           "│",
                           "_bk;t=",
                           "9: ",
                           "0.0.0.0 I x",
                           "INFO ",
                           "INFO 13-45 99:00:00 [a:1] b",
                           "[rank",
                           "[rank99999999]:[",
                           "]",
                           "%|",
                           "9%| 1/",
                           "File \"",
                           "Traceback (most recent call last):",
                           "  File \"\", line , in ",
                           ":",
                           "2025-01-01T00:00:00Z ",
                           "[TRT-LLM]",
                           "[TensorRT-LLM][",
                           "\x1b[",
                           "\x1b]0;",
                           "\x1b"}) {
    for (const char* engine : {"", "vllm", "sglang", "llamacpp", "trtllm", "lmdeploy", "tgi"}) {
      Reader reader(grammars(), {engine});
      const int source = reader.add_source("log");
      reader.feed(source, std::string(line) + "\n" + line);
      EXPECT_FALSE(dumped(reader.finish()).empty()) << line;
    }
  }
}

TEST(Hostile, NothingAtAll) {
  NEEDS_RE2();
  Reader none(grammars());
  EXPECT_EQ(none.finish().outcome, "incomplete");
  EXPECT_EQ(read_log("").lines, 0);
  EXPECT_EQ(read_log("\n\n").lines, 2);
  EXPECT_EQ(read_log("x").lines, 1);
}

TEST(GrammarFiles, ErrorsNameFileAndLine) {
  NEEDS_RE2();
  const auto folder =
      std::filesystem::temp_directory_path() / fmt::format("warmgate-grammar-{}", ::getpid());
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "bad.yaml")
      << "engine: bad\nfigures: {kv_tokens: {fold: lats}}\nlines:\n"
         "  - {name: a, match: '('}\n  - {name: b, in: warmpu, match: 'x {kv_tokenz:int}'}\n"
         "  - {name: c, match: 'y {kv_tokens:float}', colour: red}\n";
  std::string text;
  try {
    (void)Grammars::load(folder);
  } catch (const scenario::ScenarioError& error) {
    for (const scenario::Problem& problem : error.problems()) text += problem.text() + "\n";
  }
  std::filesystem::remove_all(folder);
  for (const char* part :
       {"bad.yaml:2:", "one of last", "bad.yaml:4:", "bad.yaml:5:", "did you mean warmup",
        "did you mean kv_tokens", "bad.yaml:6:", "unknown key"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in\n" << text;
  }
}

}  // namespace
}  // namespace warmgate::explain
