// Walks a folder that others write to while we look: links are never followed, what vanishes is
// read over, and both the number of entries and the time are bounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace warmgate::target {

struct TreeEntry {
  std::string path;                   // relative to the root
  bool folder = false, file = false;  // neither: a link, a socket …
  std::uint64_t bytes = 0;            // of files
};

/// Calls `each` for everything below `root` (not for itself), folders before what is in them.
/// A root that is a link is followed once. False if not all was seen: more than `most` entries,
/// deeper than 64 folders, or `seconds` were over. A root that does not exist has nothing in it.
bool walk_tree(const std::filesystem::path& root, std::size_t most, double seconds,
               const std::function<void(const TreeEntry&)>& each);

struct TreeCount {
  std::uint64_t entries = 0;           // all
  std::uint64_t files = 0, bytes = 0;  // files that no pattern of `ignore` matches
  bool complete = true;
};
/// `ignore`: globs over the name or the relative path.
TreeCount count_tree(const std::filesystem::path& root, const std::vector<std::string>& ignore,
                     std::size_t most = 200000, double seconds = 5);

/// Does one of the globs match the path or its last part? Locks and files that are still being
/// written (tmp.*, *.tmp, *.lock, Python's tmpXXXXXXXX) always do.
bool ignored(const std::vector<std::string>& globs, std::string_view path);

/// Copies a tree: links as links, modification times kept (ninja compares them), what is neither
/// file, folder nor link left out, what vanishes meanwhile too. Throws std::filesystem_error.
void copy_tree(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace warmgate::target
