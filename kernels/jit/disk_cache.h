// Compiled keys on disk, shared by every process of this user. One file an entry, named by its
// address; written to a temporary name and renamed, so a reader sees a whole entry or none. An
// entry that does not verify (length, checksum, address, key) counts as absent and is written anew.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "kernels/jit/jit.h"

namespace warmgate::jit {

struct CacheEntry {
  bool ok = false;
  std::string log;
  std::int64_t bytes = 0;  // of the object code, also where `object` was not kept
  std::string object;
};

class DiskCache {
 public:
  /// "" = no cache: every load misses, nothing is stored. So too if the folder cannot be made.
  explicit DiskCache(std::filesystem::path folder, CacheLocks locks = CacheLocks::kHeld);
  /// Is anything kept here?
  bool on() const { return !folder_.empty(); }

  /// `address` is lower-case hex; `key` is compared with what the entry says it is. The object code
  /// is verified in any case, but handed over only if asked for. `damaged`: set to true where an
  /// entry is there and does not verify, else left as it is.
  std::optional<CacheEntry> load(const std::string& address, std::string_view key,
                                 bool with_object = false, bool* damaged = nullptr) const;
  /// False if the cache cannot be written to (read-only, full): the caller goes on without.
  bool store(const std::string& address, std::string_view key, const CacheEntry& entry) const;

  /// Holds the right to build `address`, against other processes and threads, while it lives. Not a
  /// file per entry: a byte of one file, at an offset that the address gives, so nothing is left
  /// over when a process dies.
  class Lock {
   public:
    Lock(const DiskCache& cache, const std::string& address);
    ~Lock();
    /// False where there is nothing to lock, or its file cannot be used (read-only, a folder, a
    /// link): then nobody waits. A cache that was told to hold no locks says true.
    bool held() const { return held_; }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

   private:
    int fd_ = -1;
    bool held_ = false;
  };

 private:
  std::filesystem::path folder_;
  CacheLocks locks_;
};

}  // namespace warmgate::jit
