#include <sys/wait.h>
#include <unistd.h>

#include <set>
#include <thread>

#include "kernels/jit/nvrtc.h"
#include "kernels/jit/test_keys.h"

namespace warmgate::jit {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr const char* kArchitectures[] = {"sm_80", "sm_90a", "sm_100a", "sm_120a"};

class CompilerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "warmgate_jit_XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }
  Compiler cached() const { return Compiler({folder_, Backend::kAuto}); }
  std::vector<fs::path> entries() const {
    std::vector<fs::path> out;
    for (const auto& file : fs::directory_iterator(folder_)) {
      if (file.path().filename() != "lock") out.push_back(file.path());
    }
    return out;
  }
  fs::path folder_;
};

#define NEEDS_NVRTC() \
  if (!nvrtc().available) GTEST_SKIP() << nvrtc().why_not

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

TEST_F(CompilerTest, SecondStartComesFromDiskAndSoDoFailures) {
  NEEDS_NVRTC();
  const auto keys = testing::chunk_keys({0, 4});
  const std::vector<Key> few(keys.begin(), keys.begin() + 3);
  std::vector<Compiled> cold;
  Compiler first = cached();
  for (const Key& key : few) cold.push_back(first.compile(key, "sm_90a", Mode::kStrict));
  Compiler second = cached();
  for (std::size_t i = 0; i < few.size(); ++i) {
    const Compiled warm = second.compile(few[i], "sm_90a", Mode::kStrict);
    EXPECT_EQ(warm.source, Source::kDisk);
    EXPECT_EQ(warm.ok, cold[i].ok);
    EXPECT_EQ(warm.log, cold[i].log);
    EXPECT_EQ(warm.bytes, cold[i].bytes);
  }
  EXPECT_FALSE(cold[0].ok);
  EXPECT_TRUE(cold[2].ok);
  // Another architecture and another mode are other entries.
  EXPECT_EQ(second.compile(few[2], "sm_80", Mode::kStrict).source, Source::kCompiler);
}

TEST_F(CompilerTest, ADamagedEntryIsBuiltAnew) {
  NEEDS_NVRTC();
  const Key key = testing::compute_key(16);
  ASSERT_TRUE(cached().compile(key, "sm_90a", Mode::kStrict).ok);
  ASSERT_EQ(entries().size(), 1u);
  const fs::path file = entries()[0];
  fs::resize_file(file, fs::file_size(file) / 2);
  const Compiled anew = cached().compile(key, "sm_90a", Mode::kStrict);
  EXPECT_EQ(anew.source, Source::kCompiler);
  EXPECT_TRUE(anew.cached == Cached::kKept && anew.rebuilt);
  const Compiled after = cached().compile(key, "sm_90a", Mode::kStrict);
  EXPECT_EQ(after.source, Source::kDisk);
  EXPECT_TRUE(after.cached == Cached::kKept && !after.rebuilt);
}

// Keys compiled together share one file of object code. Without it their entries are worth nothing.
TEST_F(CompilerTest, ADamagedProgramIsBuiltAnewWithAllItsKeys) {
  NEEDS_NVRTC();
  const std::vector<Key> keys = testing::chunk_keys({4});
  cached().prepare(keys, "sm_90a", Mode::kStrict);
  auto files = entries();
  ASSERT_EQ(files.size(), keys.size() + 1);
  const auto program = *std::max_element(
      files.begin(), files.end(),
      [](const fs::path& a, const fs::path& b) { return fs::file_size(a) < fs::file_size(b); });
  for (const bool gone : {false, true}) {
    if (gone) {
      fs::remove(program);
    } else {
      fs::resize_file(program, fs::file_size(program) - 1);
    }
    Compiler compiler = cached();
    compiler.prepare(keys, "sm_90a", Mode::kStrict);
    for (const Key& key : keys) {
      const Compiled out = compiler.compile(key, "sm_90a", Mode::kStrict);
      EXPECT_TRUE(out.ok && out.cached == Cached::kKept && out.rebuilt) << key.text();
      EXPECT_EQ(out.source, Source::kCompiler);
      EXPECT_TRUE(compiler.code(key, "sm_90a", Mode::kStrict));
    }
    Compiler after = cached();
    const Compiled warm = after.compile(keys[0], "sm_90a", Mode::kStrict);
    EXPECT_EQ(warm.source, Source::kDisk);
    EXPECT_FALSE(warm.rebuilt);
  }
}

TEST_F(CompilerTest, CodeThatWentAfterItsKeyWasFoundIsBuiltAgain) {
  NEEDS_NVRTC();
  const Key key = testing::compute_key(16);
  ASSERT_TRUE(cached().compile(key, "sm_90a", Mode::kStrict).ok);
  for (const Mode mode : {Mode::kStrict, Mode::kLenient}) {
    Compiler compiler = cached();
    ASSERT_TRUE(compiler.compile(key, "sm_90a", mode).ok);
    for (const fs::path& file : entries()) fs::remove(file);
    const auto code = compiler.code(key, "sm_90a", mode);
    ASSERT_TRUE(code);
    EXPECT_THAT(code->cubin->substr(0, 4), HasSubstr("ELF"));
  }
}

// What nobody else can find was not kept, and nobody may be blamed for compiling it again.
TEST_F(CompilerTest, ACacheThatCannotBeLockedOrWrittenSaysSo) {
  NEEDS_NVRTC();
  const std::vector<Key> keys = testing::chunk_keys({4});
  fs::create_directory(folder_ / "lock");
  Compiler unlocked = cached();
  unlocked.prepare(keys, "sm_90a", Mode::kStrict);
  const Compiled together = unlocked.compile(keys[0], "sm_90a", Mode::kStrict);
  const Compiled alone = unlocked.compile(testing::compute_key(16), "sm_90a", Mode::kStrict);
  EXPECT_TRUE(together.ok && together.cached == Cached::kUnwritable);
  EXPECT_TRUE(alone.ok && alone.cached == Cached::kUnwritable);
  EXPECT_EQ(Compiler({"", Backend::kAuto}).compile(keys[0], "sm_90a", Mode::kStrict).cached,
            Cached::kOff);
}

TEST_F(CompilerTest, AFolderInPlaceOfAnEntryIsReplacedWhereItIsEmpty) {
  NEEDS_NVRTC();
  const Key key = testing::compute_key(16);
  ASSERT_TRUE(cached().compile(key, "sm_90a", Mode::kStrict).ok);
  const fs::path entry = entries().at(0);
  for (const bool empty : {true, false}) {
    fs::remove(entry);
    fs::create_directory(entry);
    if (!empty) std::ofstream(entry / "mine") << "x";
    const Compiled out = cached().compile(key, "sm_90a", Mode::kStrict);
    EXPECT_TRUE(out.ok && out.rebuilt);
    EXPECT_EQ(out.cached, empty ? Cached::kKept : Cached::kUnwritable);
    EXPECT_EQ(fs::is_directory(entry), !empty);
  }
  EXPECT_TRUE(fs::exists(entry / "mine"));
}

TEST_F(CompilerTest, CompilersOfDifferentSaltsShareNothing) {
  NEEDS_NVRTC();
  const Key key = testing::compute_key(16);
  ASSERT_TRUE(cached().compile(key, "sm_90a", Mode::kStrict).ok);
  Compiler other({folder_, Backend::kAuto, CacheLocks::kHeld, "another"});
  EXPECT_EQ(other.compile(key, "sm_90a", Mode::kStrict).source, Source::kCompiler);
  EXPECT_EQ(cached().compile(key, "sm_90a", Mode::kStrict).source, Source::kDisk);
}

TEST_F(CompilerTest, WithoutACacheFolderItCompilesAllTheSame) {
  NEEDS_NVRTC();
  std::ofstream(folder_ / "file") << "";
  Compiler compiler({folder_ / "file" / "cache", Backend::kAuto});
  EXPECT_EQ(compiler.compile(testing::compute_key(8), "sm_90a", Mode::kStrict).source,
            Source::kCompiler);
  EXPECT_EQ(compiler.compile(testing::compute_key(8), "sm_90a", Mode::kStrict).source,
            Source::kMemory);
}

TEST_F(CompilerTest, AnUnknownArchitectureFailsWithTheCompilersWords) {
  NEEDS_NVRTC();
  const Compiled out = cached().compile(testing::compute_key(8), "sm_1", Mode::kStrict);
  EXPECT_FALSE(out.ok);
  EXPECT_THAT(out.log, HasSubstr("arch"));
}

TEST_F(CompilerTest, ThreadsShareOneCompilation) {
  NEEDS_NVRTC();
  Compiler compiler = cached();
  std::atomic<int> compiled{0}, ok{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (const int block : {8, 16}) {
        const Compiled out = compiler.compile(testing::compute_key(block), "sm_90a", Mode::kStrict);
        ok += out.ok ? 1 : 0;
        compiled += out.source == Source::kCompiler ? 1 : 0;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(ok, 8);
  EXPECT_EQ(compiled, 2);
}

// cache-sound: concurrent cold starts give one compile per key, and no error.
TEST_F(CompilerTest, EightColdProcessesCompileEachKeyOnce) {
  NEEDS_NVRTC();
  std::vector<Key> keys = {testing::compute_key(8), testing::compute_key(16),
                           testing::chunk_key("div16", "any", 0, "T"),
                           testing::chunk_key("div16", "any", 4, "T")};
  int results[2];
  ASSERT_EQ(pipe(results), 0);
  std::vector<pid_t> children;
  for (int child = 0; child < 8; ++child) {
    const pid_t pid = fork();
    if (pid == 0) {
      Compiler compiler({folder_, Backend::kNvrtc});
      compiler.prepare(keys, "sm_90a", Mode::kStrict);
      for (const Key& key : keys) {
        const Compiled out = compiler.compile(key, "sm_90a", Mode::kStrict);
        const char what = out.source == Source::kCompiler ? 'c'
                          : out.source == Source::kDisk   ? 'd'
                                                          : '?';
        (void)!write(results[1], &what, 1);
        (void)!write(results[1], out.ok ? "o" : "f", 1);
      }
      _exit(0);
    }
    children.push_back(pid);
  }
  close(results[1]);
  std::string text;
  char byte = 0;
  while (read(results[0], &byte, 1) == 1) text += byte;
  close(results[0]);
  for (const pid_t pid : children) {
    int status = 0;
    waitpid(pid, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  EXPECT_EQ(std::count(text.begin(), text.end(), 'c'), 4);
  EXPECT_EQ(std::count(text.begin(), text.end(), 'd'), 28);
  EXPECT_EQ(std::count(text.begin(), text.end(), 'f'), 8);
  EXPECT_EQ(entries().size(), 5u) << "four keys, a program of two of them, nothing half-written";
}

TEST_F(CompilerTest, DefaultCacheFolder) {
  setenv("WARMGATE_KERNEL_CACHE", "/a/b", 1);
  EXPECT_EQ(default_cache_dir(), "/a/b");
  unsetenv("WARMGATE_KERNEL_CACHE");
  setenv("XDG_CACHE_HOME", "/x", 1);
  EXPECT_EQ(default_cache_dir(), "/x/warmgate/kernels");
  unsetenv("XDG_CACHE_HOME");
  setenv("HOME", "/h", 1);
  EXPECT_EQ(default_cache_dir(), "/h/.cache/warmgate/kernels");
  unsetenv("HOME");
  EXPECT_EQ(default_cache_dir(), "");
}

}  // namespace
}  // namespace warmgate::jit
