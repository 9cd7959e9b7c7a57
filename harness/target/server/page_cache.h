// Which part of some files the kernel holds in memory, and getting rid of it without being root.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace warmgate::target {

struct PageCache {
  std::uint64_t files = 0, bytes = 0;  // regular files that could be read
  std::uint64_t resident = 0;          // bytes of them in memory, by whole pages
  std::uint64_t unknown = 0;           // bytes of files of which the kernel tells only the owner
  double share() const {
    return bytes == 0 ? 0 : static_cast<double>(resident) / static_cast<double>(bytes);
  }
};

/// `paths`: files, and folders with all below them. What cannot be read is left out.
PageCache look_at_page_cache(const std::vector<std::filesystem::path>& paths);

/// Asks the kernel to forget their pages (posix_fadvise; pages in use, dirty pages and those of
/// memory file systems stay). The whole machine's cache is never dropped.
void evict_from_page_cache(const std::vector<std::filesystem::path>& paths);

/// Reads them once.
void read_into_page_cache(const std::vector<std::filesystem::path>& paths);

}  // namespace warmgate::target
