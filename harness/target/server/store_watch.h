// What appears in a folder while somebody else works in it. Polled by the modification times of its
// folders: one lstat a folder and look, no watches that a machine may run out of, nothing missed
// by a queue that overflows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <unordered_set>
#include <vector>

namespace warmgate::target {

struct FreshFile {
  std::string path;             // relative to the root
  std::int64_t changed_ns = 0;  // its inode, by the wall clock; written or renamed to here
  std::uint64_t bytes = 0;      // 0 of a link
  bool after_look = false;      // its folder had been looked at before, without it
};

class StoreWatch {
 public:
  /// `root` may not exist yet. Folders of `skip` (absolute) are not entered. At most `most` entries
  /// are known; what lies beyond is not seen and cut() says so.
  StoreWatch(std::filesystem::path root, std::vector<std::filesystem::path> skip, std::size_t most);

  /// The inventory: what is there now is not new.
  void begin();
  /// Calls `fresh` for each file (and link) that is new since the last look: a name that was not
  /// there, or the same name with another inode.
  void look(const std::function<void(const FreshFile&)>& fresh);
  bool cut() const { return cut_; }
  std::size_t folders() const { return folders_.size(); }
  const std::filesystem::path& root() const { return root_; }

 private:
  struct Folder {
    std::int64_t modified_ns = -1;              // as of the last scan; -1: scan again
    std::unordered_set<std::uint64_t> entries;  // hashes of name and inode
  };
  using Fresh = std::function<void(const FreshFile&)>;
  // False if it is not there any more. New folders below it are appended to `found`.
  bool scan(const std::string& path, Folder& folder, const Fresh& fresh, bool after_look,
            std::vector<std::string>& found);
  void enter(std::vector<std::string> queue, const Fresh& fresh, bool after_look);

  std::filesystem::path root_;
  std::vector<std::filesystem::path> skip_;
  std::size_t most_, known_ = 0;
  std::map<std::string, Folder> folders_;  // relative, "" = the root
  bool cut_ = false;
};

}  // namespace warmgate::target
