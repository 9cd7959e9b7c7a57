// Archives as bundles use them: packed by the machine's tar, read by a small reader of our own that
// takes nothing but plain files and folders, whatever the archive says.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace warmgate::run {

struct ArchiveLimits {
  std::size_t bytes = std::size_t{256} << 20;  // unpacked, all in all
  std::size_t entries = 20000;
  std::size_t depth = 16;
};

/// True for a file that begins like a .tar, .tar.gz or .tar.zst.
bool looks_like_archive(const std::filesystem::path& file);

/// Packs the contents of `folder` with `tar`: gzip, or zstd where the name ends with .zst, or plain
/// where it ends with .tar. Owners, times and order do not depend on who packs. Replaces `file`
/// only when all is written. Throws std::runtime_error.
void pack(const std::filesystem::path& folder, const std::filesystem::path& file);

/// Unpacks into `folder`, which must be empty and private. Throws std::runtime_error naming what is
/// wrong: damage, absolute or climbing paths, links, devices, names that occur twice, extensions
/// that pack() does not write, more than the limits. Files keep of their mode only whether they may
/// be executed.
void unpack(const std::filesystem::path& file, const std::filesystem::path& folder,
            const ArchiveLimits& limits = {});

/// One entry of an uncompressed tar: `name` is checked and relative, without a slash at its end.
struct ArchiveEntry {
  std::string name;
  bool folder = false, executable = false;
  std::string_view bytes;
};
/// Calls `take` for each entry. Throws as unpack().
void read_tar(std::string_view tar, const ArchiveLimits& limits,
              const std::function<void(const ArchiveEntry&)>& take);

}  // namespace warmgate::run
