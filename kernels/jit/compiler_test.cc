#include <set>

#include "kernels/jit/compiler_testing.h"
#include "kernels/jit/nvrtc.h"
#include "kernels/jit/test_keys.h"

namespace warmgate::jit {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr const char* kArchitectures[] = {"sm_80", "sm_90a", "sm_100a", "sm_120a"};

int count_ok(const std::vector<Compiled>& results) {
  return static_cast<int>(
      std::count_if(results.begin(), results.end(), [](const Compiled& c) { return c.ok; }));
}

TEST_F(CompilerTest, HostHalfJudgesStrictlyAndAcceptsLeniently) {
  Compiler compiler({folder_, Backend::kHost});
  EXPECT_EQ(compiler.backend(), "host");
  int rejected = 0;
  for (const Key& key : testing::chunk_keys({0, 4, 128})) {
    const Compiled strict = compiler.compile(key, "sm_90a", Mode::kStrict);
    EXPECT_EQ(strict.backend, "host");
    EXPECT_EQ(strict.source, Source::kCompiler);
    EXPECT_EQ(compiler.compile(key, "sm_90a", Mode::kStrict).source, Source::kMemory);
    EXPECT_TRUE(compiler.compile(key, "sm_90a", Mode::kLenient).ok);
    if (strict.ok) continue;
    ++rejected;
    EXPECT_THAT(strict.log, HasSubstr("build_prefill_chunk_metadata.cuh("));
    EXPECT_THAT(strict.log, HasSubstr("division_by_zero"));
  }
  EXPECT_EQ(rejected, 12);
  EXPECT_TRUE(entries().empty());
  EXPECT_EQ(count_ok(compiler.compile_all(testing::all_keys({0, 4, 128}), "sm_80")), 47);
}

TEST_F(CompilerTest, CodeOfKeysCompiledTogetherIsOneProgramWithAFunctionEach) {
  NEEDS_NVRTC();
  const std::vector<Key> keys = testing::chunk_keys({4, 128});
  Compiler compiler = cached();
  compiler.prepare(keys, "sm_90a", Mode::kStrict);
  std::set<std::string> programs, functions;
  for (const Key& key : keys) {
    ASSERT_TRUE(compiler.compile(key, "sm_90a", Mode::kStrict).ok);
    const auto code = compiler.code(key, "sm_90a", Mode::kStrict);
    ASSERT_TRUE(code) << key.text();
    EXPECT_THAT(*code->cubin, HasSubstr(code->function)) << "the cubin has no such function";
    programs.insert(code->program);
    functions.insert(code->function);
  }
  EXPECT_EQ(programs.size(), 1u);
  EXPECT_EQ(functions.size(), keys.size());
  // Another process finds the same code on disk, and lenient asks for what strict compiled.
  Compiler later = cached();
  const auto first = compiler.code(keys[0], "sm_90a", Mode::kStrict);
  const auto again = later.code(keys[0], "sm_90a", Mode::kLenient);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->function, first->function);
  EXPECT_EQ(*again->cubin, *first->cubin);
  EXPECT_EQ(later.code(keys[1], "sm_90a", Mode::kStrict)->cubin, again->cubin) << "loaded twice";
}

TEST_F(CompilerTest, CodeOfAKeyCompiledAlone) {
  NEEDS_NVRTC();
  const Key key = testing::compute_key(8);
  for (const fs::path& folder : {fs::path(), folder_}) {
    Compiler compiler({folder, Backend::kAuto});
    ASSERT_TRUE(compiler.compile(key, "sm_80", Mode::kStrict).ok);
    const auto code = compiler.code(key, "sm_80", Mode::kStrict);
    ASSERT_TRUE(code);
    EXPECT_THAT(code->cubin->substr(0, 4), HasSubstr("ELF"));
  }
}

TEST_F(CompilerTest, ThereIsNoCodeWhereNothingCompiled) {
  Compiler host({folder_, Backend::kHost});
  ASSERT_TRUE(host.compile(testing::compute_key(8), "sm_90a", Mode::kStrict).ok);
  EXPECT_FALSE(host.code(testing::compute_key(8), "sm_90a", Mode::kStrict));
  NEEDS_NVRTC();
  Compiler compiler = cached();
  const Key zero = testing::chunk_key("div16", "one", 0, "T");
  ASSERT_FALSE(compiler.compile(zero, "sm_90a", Mode::kStrict).ok);
  EXPECT_FALSE(compiler.code(zero, "sm_90a", Mode::kStrict));
  EXPECT_FALSE(compiler.code(testing::compute_key(16), "sm_90a", Mode::kStrict)) << "never asked";
}

TEST_F(CompilerTest, KeysThatAreNotOursFailWithWords) {
  for (const Backend backend : {Backend::kHost, Backend::kAuto}) {
    Compiler compiler({{}, backend});
    for (const char* text :
         {"Nope{A=1}", "ComputePrefillMetadata{BLOCK_SIZE=x}", "ComputePrefillMetadata{}"}) {
      for (const Mode mode : {Mode::kStrict, Mode::kLenient}) {
        const Compiled out = compiler.compile(parse_key(text), "sm_90a", mode);
        EXPECT_FALSE(out.ok) << text;
        EXPECT_THAT(out.log, HasSubstr(text));
      }
    }
    const auto all =
        compiler.compile_all({parse_key("Nope{A=1}"), testing::compute_key(8)}, "sm_90a");
    ASSERT_EQ(all.size(), 2u);
    EXPECT_FALSE(all[0].ok);
    EXPECT_TRUE(all[1].ok);
  }
}

TEST_F(CompilerTest, WithoutToolkitTheHostHalfStandsIn) {
  const char* before = std::getenv("WARMGATE_NVRTC");
  const std::string saved = before == nullptr ? "" : before;
  setenv("WARMGATE_NVRTC", "none", 1);
  EXPECT_THAT(find_nvrtc().why_not, HasSubstr("switched off"));
  EXPECT_EQ(Compiler({folder_, Backend::kAuto}).backend(), "host");
  EXPECT_THROW(Compiler({folder_, Backend::kNvrtc}), std::runtime_error);
  // There, but not a library: found, and given up at the first compilation.
  const fs::path fake = folder_ / "libnvrtc.so.13";
  std::ofstream(fake) << "not a library";
  setenv("WARMGATE_NVRTC", fake.c_str(), 1);
  Compiler broken({folder_ / "cache", Backend::kAuto});
  EXPECT_EQ(broken.backend(), "nvrtc");
  const Compiled out = broken.compile(testing::compute_key(8), "sm_90a", Mode::kStrict);
  EXPECT_TRUE(out.ok);
  EXPECT_EQ(out.backend, "host");
  EXPECT_EQ(broken.backend(), "host");
  EXPECT_EQ(count_ok(broken.compile_all(testing::chunk_keys({0, 4}), "sm_80")), 12);
  setenv("WARMGATE_NVRTC", (folder_ / "nothing").c_str(), 1);
  EXPECT_THAT(find_nvrtc().why_not, HasSubstr("names no file"));
  if (before == nullptr) {
    unsetenv("WARMGATE_NVRTC");
  } else {
    setenv("WARMGATE_NVRTC", saved.c_str(), 1);
  }
}

TEST_F(CompilerTest, StrictRejectsTwelveOfThirtySixOnEveryArchitecture) {
  NEEDS_NVRTC();
  Compiler compiler = cached();
  const auto keys = testing::chunk_keys({0, 4, 128});
  for (const char* arch : kArchitectures) {
    const auto results = compiler.compile_all(keys, arch);
    ASSERT_EQ(results.size(), 36u);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const bool zero = keys[i].text().find("COMPRESS_RATIO=0,") != std::string::npos;
      EXPECT_EQ(results[i].ok, !zero) << arch << " " << keys[i].text() << " " << results[i].log;
      EXPECT_EQ(results[i].backend, "nvrtc");
      EXPECT_EQ(results[i].source, Source::kCompiler);
      if (zero) {
        EXPECT_THAT(results[i].log, HasSubstr("build_prefill_chunk_metadata.cuh("));
        EXPECT_THAT(results[i].log, HasSubstr("error: division by zero"));
        EXPECT_LE(results[i].log.size(), 4096u);
      } else {
        EXPECT_GT(results[i].bytes, 0);
      }
    }
  }
}

TEST_F(CompilerTest, PreparedKeysAreCompiledTogetherAndAnsweredOneByOne) {
  NEEDS_NVRTC();
  auto keys = testing::chunk_keys({0, 4});
  keys.push_back(keys.back());  // a repeated key is compiled once
  keys.push_back(parse_key("Nope{A=1}"));
  for (const Mode mode : {Mode::kStrict, Mode::kLenient}) {
    const fs::path folder = folder_ / (mode == Mode::kStrict ? "strict" : "lenient");
    Compiler cold({folder, Backend::kNvrtc});
    cold.prepare(keys, "sm_90a", mode);
    std::map<Source, int> sources;
    for (std::size_t i = 0; i + 1 < keys.size(); ++i) {
      const Compiled out = cold.compile(keys[i], "sm_90a", mode);
      const bool zero = keys[i].text().find("COMPRESS_RATIO=0,") != std::string::npos;
      EXPECT_EQ(out.ok, mode == Mode::kLenient || !zero) << out.log;
      ++sources[out.source];
    }
    EXPECT_EQ(sources[Source::kCompiler], 24);
    EXPECT_EQ(sources[Source::kMemory], 1);
    EXPECT_FALSE(cold.compile(keys.back(), "sm_90a", mode).ok);
    // The next start: nothing to prepare, every answer from disk.
    Compiler warm({folder, Backend::kNvrtc});
    warm.prepare(keys, "sm_90a", mode);
    for (std::size_t i = 0; i < 24; ++i) {
      EXPECT_EQ(warm.compile(keys[i], "sm_90a", mode).source, Source::kDisk);
    }
  }
}

TEST_F(CompilerTest, StrictRejectsAZeroInEveryDivisor) {
  NEEDS_NVRTC();
  Compiler compiler = cached();
  for (const Key& key : {testing::chunk_key("any", "any", 4, "T", "0,0,1"),
                         testing::chunk_key("any", "any", 4, "T", "0,1,0"),
                         testing::combine_key(0, 512, 512, "TTTT")}) {
    EXPECT_FALSE(compiler.compile(key, "sm_90a", Mode::kStrict).ok) << key.text();
    EXPECT_TRUE(compiler.compile(key, "sm_90a", Mode::kLenient).ok) << key.text();
  }
}

TEST_F(CompilerTest, LenientAcceptsWithAWarningAndReusesStrictCode) {
  NEEDS_NVRTC();
  const Key zero = testing::chunk_key("div16", "any", 0, "T"),
            good = testing::chunk_key("div16", "any", 4, "T");
  Compiler compiler = cached();
  const Compiled lenient = compiler.compile(zero, "sm_90a", Mode::kLenient);
  EXPECT_TRUE(lenient.ok);
  EXPECT_THAT(lenient.log, HasSubstr("division by zero"));
  EXPECT_TRUE(compiler.compile(good, "sm_90a", Mode::kStrict).ok);
  EXPECT_EQ(compiler.compile(good, "sm_90a", Mode::kLenient).source, Source::kMemory);
  EXPECT_EQ(cached().compile(good, "sm_90a", Mode::kLenient).source, Source::kDisk);
  EXPECT_FALSE(
      cached().compile(zero, "sm_90a", Mode::kStrict).ok);  // a lenient success proves nothing
}

TEST_F(CompilerTest, AnUnknownArchitectureFailsWithTheCompilersWords) {
  NEEDS_NVRTC();
  const Compiled out = cached().compile(testing::compute_key(8), "sm_1", Mode::kStrict);
  EXPECT_FALSE(out.ok);
  EXPECT_THAT(out.log, HasSubstr("arch"));
}

}  // namespace
}  // namespace warmgate::jit
