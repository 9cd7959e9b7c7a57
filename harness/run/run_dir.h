// A folder that belongs to one run alone, and descriptors that close themselves.
#pragma once

#include <filesystem>
#include <string>

namespace warmgate::run {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  ~UniqueFd();
  UniqueFd(UniqueFd&& other) noexcept;
  UniqueFd& operator=(UniqueFd&& other) noexcept;
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  /// Hands the descriptor over; the caller closes it.
  int release() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }

 private:
  int fd_ = -1;
};

/// `warmgate-<label>-XXXXXX` under $TMPDIR, else /tmp; mode 0700; removed with everything in it
/// when this object ends, unless `keep` (or WARMGATE_KEEP_RUNS=1 in the environment) says
/// otherwise. Marked as ours while we live, so that what a kill leaves is removed at the next start
/// (stale.h); a folder that is to be kept is not. Throws std::system_error naming the folder that
/// could not be made.
class RunDir {
 public:
  explicit RunDir(const std::string& label, bool keep = false);
  ~RunDir();
  RunDir(RunDir&& other) noexcept;
  RunDir& operator=(RunDir&&) = delete;
  const std::filesystem::path& path() const { return path_; }
  bool kept() const { return keep_; }

 private:
  std::filesystem::path path_;
  bool keep_ = false;
  UniqueFd owner_;
};

/// Where temporary folders go: $TMPDIR if it is set and not empty, else /tmp.
std::filesystem::path temp_root();

}  // namespace warmgate::run
