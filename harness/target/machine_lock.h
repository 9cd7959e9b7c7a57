// One machine, many warmgates: runs whose time is gated hold the machine alone, others share it.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>

#include "harness/target/fd.h"
#include "harness/target/target.h"

namespace warmgate::target {

class MachineLock {
 public:
  enum class Mode { kShared, kExclusive };

  /// Waits until it has the lock, `cancel` is set or `timeout` is over. `on_wait` is called once,
  /// with who holds it ("pid 123, exclusive, since 2026-01-02T03:04:05Z: NAME"), if there is a
  /// wait. `what` is what others read while they wait. Throws std::system_error if the lock file
  /// cannot be used (e.g. another user's link in its place); a lock that was not got is !held().
  MachineLock(Mode mode, const std::string& what, const CancelToken& cancel,
              std::chrono::milliseconds timeout,
              const std::function<void(const std::string&)>& on_wait = {},
              const std::filesystem::path& folder = default_folder());
  /// The usual use: waits as long as it takes (or until cancelled), named by our command line.
  static MachineLock shared(const CancelToken& cancel);
  static MachineLock exclusive(const CancelToken& cancel);
  ~MachineLock();
  MachineLock(MachineLock&&) = default;
  bool held() const { return fd_.valid(); }
  /// Of who held it while we waited; "" if there was no wait.
  const std::string& waited_for() const { return waited_for_; }

  /// $XDG_RUNTIME_DIR if it is a folder of ours that nobody else may write, else /tmp.
  static std::filesystem::path default_folder();
  /// The file in `folder`: warmgate-<uid>.lock. Beside it warmgate-<uid>.gate, which is held while
  /// waiting, so that newcomers that share do not overtake one that waits to be alone.
  static std::filesystem::path file(const std::filesystem::path& folder);

 private:
  Fd fd_;
  std::filesystem::path note_;  // who we are, for others to read; removed with the lock
  std::string waited_for_;
};

}  // namespace warmgate::target
