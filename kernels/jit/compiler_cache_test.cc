// The compiler and its cache on disk: second starts, damage, what cannot be kept, many at once.
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <set>
#include <thread>

#include "kernels/jit/compiler_testing.h"
#include "kernels/jit/nvrtc.h"
#include "kernels/jit/test_keys.h"

namespace warmgate::jit {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

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
