// One machine, many warmgates: runs whose time is gated hold the machine alone, others share it.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>

#include "harness/target/fd.h"
#include "harness/target/target.h"

namespace warmgate::target {

/// Files, all of mode 0600 and of this user, in one folder: `warmgate-<uid>.lock`, held shared or
/// exclusively; `warmgate-<uid>.gate`, which names the last that arrived; and one note for each
/// that waits or holds, `….lock.<pid>.<n>.<time>`. Everybody waits for the one who arrived before,
/// so nobody is overtaken, neither one who wants to be alone by those who share nor the other way
/// round. The first two stay for ever: a lock file that is removed locks nothing. All of it is
/// released by the kernel when a process dies; notes of the dead are removed by the next.
class MachineLock {
 public:
  enum class Mode { kShared, kExclusive };

  /// Waits until it has the lock, `cancel` is set or `timeout` is over. `on_wait` is called when a
  /// wait begins and every few seconds of it, with who is in the way ("pid 123, exclusive, since
  /// 2026-01-02T03:04:05Z: NAME"). `what` is what others read while they wait. Throws
  /// std::system_error if the lock file cannot be used (e.g. another user's file in its place); a
  /// lock that was not got is !held().
  MachineLock(Mode mode, const std::string& what, const CancelToken& cancel,
              std::chrono::milliseconds timeout,
              const std::function<void(const std::string&)>& on_wait = {},
              const std::filesystem::path& folder = default_folder());
  ~MachineLock();
  MachineLock(MachineLock&&) = default;
  bool held() const { return fd_.valid(); }
  /// Of who was last in the way while we waited; "" if there was no wait.
  const std::string& waited_for() const { return waited_for_; }

  /// $XDG_RUNTIME_DIR if it is a folder of ours that nobody else may write, else /tmp.
  static std::filesystem::path default_folder();
  /// The lock file in `folder`.
  static std::filesystem::path file(const std::filesystem::path& folder);
  /// Removes notes of processes that are gone. Never throws.
  static void sweep(const std::filesystem::path& folder = default_folder());

 private:
  class Wait;
  void arrive(Wait& wait, const std::filesystem::path& path, const std::string& text,
              std::string& before);
  bool take(Wait& wait, Mode mode, const std::filesystem::path& path, const std::string& before);

  Fd fd_;
  Fd note_fd_;  // who we are, for others to read; bytes of it are locked (see the .cc)
  std::filesystem::path note_;
  std::string waited_for_;
};

}  // namespace warmgate::target
