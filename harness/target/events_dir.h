// Events of processes that have no descriptor of ours: each appends to a file of its own in a
// folder that we watch (Python's spawn keeps the environment and loses the descriptor).
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/target/fd.h"
#include "harness/target/mask.h"
#include "harness/trace/event.h"

namespace warmgate::target {

class EventsDir {
 public:
  /// Files past this many are not read (one bad line says so).
  static constexpr std::size_t kMaxFiles = 256;
  static constexpr std::size_t kMaxEvents = 200000;

  /// `folder` exists. `trace` and `secrets` outlive this object.
  EventsDir(std::filesystem::path folder, trace::Trace& trace,
            const std::vector<std::string>& secrets);
  ~EventsDir();
  EventsDir(const EventsDir&) = delete;
  EventsDir& operator=(const EventsDir&) = delete;
  /// Readable when something may have changed; -1 where the kernel gives no inotify (then poll).
  int fd() const { return inotify_.get(); }
  /// Reads what is new in all files. True if there was anything.
  bool poll();
  /// Every writer is gone: rests without newline become bad lines. Then what is written in place,
  /// the *.last files (harness/probe/nccl/last_states.h), is read: only now does it hold still.
  void finish();
  bool saw_secret() const;

 private:
  struct File {
    Fd fd;
    std::uint64_t size = 0;
    std::unique_ptr<trace::LineReader> reader;
    std::unique_ptr<SecretSpotter> spotter;
  };
  void look();
  void read_last(const std::filesystem::path& path);
  bool drain(File& file);

  std::filesystem::path folder_;
  trace::Trace& trace_;
  const std::vector<std::string>& secrets_;
  Fd inotify_;
  int watch_ = -1;
  std::map<std::string, File> files_;  // by name, so that reading has one order
  bool too_many_ = false, last_secret_ = false;
};

}  // namespace warmgate::target
