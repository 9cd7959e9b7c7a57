#include "kernels/jit/disk_cache.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/trace/sha256.h"

namespace warmgate::jit {
namespace {

namespace fs = std::filesystem;

class DiskCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "warmgate_cache_XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override {
    fs::permissions(folder_, fs::perms::owner_all);
    fs::remove_all(folder_);
  }
  static std::string read(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static void write(const fs::path& path, const std::string& data) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << data;
  }

  fs::path folder_;
  const std::string address_ = trace::sha256_hex("an address");
  const std::string key_ = "K{A=1}";
  const CacheEntry entry_ = {true, "a log\nof two lines", 5, std::string("\0\1\n\2\3", 5)};
};

TEST_F(DiskCacheTest, StoresAndLoads) {
  const DiskCache cache(folder_ / "made" / "on demand");
  EXPECT_FALSE(cache.load(address_, key_));
  ASSERT_TRUE(cache.store(address_, key_, entry_));
  const auto with = cache.load(address_, key_, true), without = cache.load(address_, key_);
  ASSERT_TRUE(with && without);
  EXPECT_TRUE(with->ok);
  EXPECT_EQ(with->log, entry_.log);
  EXPECT_EQ(with->bytes, 5);
  EXPECT_EQ(with->object, entry_.object);
  EXPECT_EQ(without->object, "");
  ASSERT_TRUE(cache.store(address_, key_, {false, "no", 0, ""}));
  EXPECT_FALSE(cache.load(address_, key_)->ok);
}

TEST_F(DiskCacheTest, DamageOfAnyByteIsAMiss) {
  const DiskCache cache(folder_);
  ASSERT_TRUE(cache.store(address_, key_, entry_));
  const fs::path file = folder_ / address_;
  const std::string good = read(file);
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x21);
    write(file, bad);
    EXPECT_FALSE(cache.load(address_, key_)) << "byte " << i;
    write(file, good.substr(0, i));
    EXPECT_FALSE(cache.load(address_, key_)) << "cut at " << i;
  }
  write(file, good + "x");
  EXPECT_FALSE(cache.load(address_, key_));
  write(file, "");
  EXPECT_FALSE(cache.load(address_, key_));
  ASSERT_TRUE(cache.store(address_, key_, entry_));
  EXPECT_TRUE(cache.load(address_, key_));
}

TEST_F(DiskCacheTest, AnEntryOfAnotherKeyOrAddressIsAMiss) {
  const DiskCache cache(folder_);
  ASSERT_TRUE(cache.store(address_, key_, entry_));
  EXPECT_FALSE(cache.load(address_, "K{A=2}"));
  const std::string other = trace::sha256_hex("another");
  fs::copy_file(folder_ / address_, folder_ / other);
  EXPECT_FALSE(cache.load(other, key_));
}

TEST_F(DiskCacheTest, ThingsThatAreNotEntries) {
  const DiskCache cache(folder_);
  fs::create_directories(folder_ / address_ / "of somebody");
  EXPECT_FALSE(cache.load(address_, key_));
  EXPECT_FALSE(cache.store(address_, key_, entry_));
  fs::remove(folder_ / address_ / "of somebody");
  EXPECT_TRUE(cache.store(address_, key_, entry_));  // an empty folder is nobody's
  EXPECT_TRUE(cache.load(address_, key_));
  fs::remove(folder_ / address_);
  fs::create_symlink("/dev/zero", folder_ / address_);
  EXPECT_FALSE(cache.load(address_, key_));
  EXPECT_TRUE(cache.store(address_, key_, entry_));  // replaces the link, not what it names
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(folder_ / address_)));
  for (const auto& file : fs::directory_iterator(folder_)) {
    EXPECT_EQ(file.path().extension(), "") << "left over: " << file.path();
  }
}

TEST_F(DiskCacheTest, WithoutAFolderItWorksAndKeepsNothing) {
  const DiskCache none("");
  EXPECT_FALSE(none.store(address_, key_, entry_));
  EXPECT_FALSE(none.load(address_, key_));
  const DiskCache::Lock lock(none, address_);
  write(folder_ / "file", "");
  const DiskCache below_a_file(folder_ / "file" / "cache");
  EXPECT_FALSE(below_a_file.store(address_, key_, entry_));
}

TEST_F(DiskCacheTest, ReadOnlyFolderStillServes) {
  const DiskCache cache(folder_);
  ASSERT_TRUE(cache.store(address_, key_, entry_));
  using enum fs::perms;
  fs::permissions(folder_,
                  owner_read | owner_exec | group_read | group_exec | others_read | others_exec);
  const bool root = geteuid() == 0;  // root writes to read-only folders; nobody does not
  if (root) {
    ASSERT_EQ(seteuid(65534), 0);
  }
  EXPECT_TRUE(cache.load(address_, key_));
  EXPECT_FALSE(cache.store(trace::sha256_hex("another"), key_, entry_));
  { const DiskCache::Lock lock(cache, address_); }
  if (root) {
    ASSERT_EQ(seteuid(0), 0);
  }
}

// A lock of one entry keeps out its builders, also of another process, and nobody else's.
TEST_F(DiskCacheTest, LocksAreOfOneEntryAndEndWithTheProcess) {
  const DiskCache cache(folder_);
  const std::string other = trace::sha256_hex("another");
  int held[2];
  ASSERT_EQ(pipe(held), 0);
  const pid_t child = fork();
  if (child == 0) {
    const DiskCache::Lock lock(cache, address_);
    (void)!::write(held[1], "x", 1);
    pause();
    _exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(held[0], &byte, 1), 1);
  { const DiskCache::Lock free_entry(cache, other); }
  const pid_t waiter = fork();
  if (waiter == 0) {
    const DiskCache::Lock lock(cache, address_);
    _exit(0);
  }
  usleep(50'000);
  int status = 0;
  EXPECT_EQ(waitpid(waiter, &status, WNOHANG), 0) << "the lock did not hold";
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  EXPECT_EQ(waitpid(waiter, &status, 0), waiter);
  EXPECT_TRUE(WIFEXITED(status));
  close(held[0]);
  close(held[1]);
}

}  // namespace
}  // namespace warmgate::jit
