// Turns what a member prints into events while it runs: phases, skips, late compilations, and in
// the end what broke first. Times are those of arrival, as fine as the log's own would be at best.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "harness/explain/reader.h"
#include "harness/target/companion.h"

namespace warmgate::target {

struct LogMember {
  std::string name;
  int rank = 0;               // of the member among the workers
  bool alone = true;          // the only member: ranks of its log are the run's
  std::string grammar;        // of its log
  double clock_offset_s = 0;  // taken off the log's own times; events stand at those of arrival
};

/// One member's. Not thread-safe but for capture_end_ns().
class LogFollower {
 public:
  /// How far the arrival of a line may be from the moment it tells of: most engines print whole
  /// seconds, and a pipe of Python's may be late by a buffer.
  static constexpr std::int64_t kResolution_ns = 1'000'000'000;

  /// `sink` and `grammars` outlive it; without grammars nothing is read.
  LogFollower(const explain::Grammars* grammars, LogMember member, EventSink& sink);
  ~LogFollower();
  LogFollower(const LogFollower&) = delete;
  LogFollower& operator=(const LogFollower&) = delete;

  void feed(std::string_view stream, std::string_view bytes, std::int64_t t_ns);
  /// From here on what it prints is a consequence of our ending it. `well`: it had served, so the
  /// phases whose ends its log never told are over; their `phase_end` says `inferred`.
  void mark_end(bool well);
  /// Last words, then `fault` where the log names a cause, `counter` for figures that are ours,
  /// `hello` with what could have been seen, and `reading`. `ours`: we ended it. `started`: it was
  /// up, whatever came later, so phases that nobody saw end are over unless it failed before
  /// it served; their `phase_end` says `inferred`.
  void close(const explain::Ending& ending, bool ours, bool started);
  /// When the log spoke of capturing last, or that phase ended; 0 = neither yet.
  std::int64_t capture_end_ns() const { return capture_end_ns_.load(); }

 private:
  void said(const explain::Said& said);
  void phase(const explain::Said& said, bool begins);
  void close_phases(std::int64_t t_ns);
  void phase_event(bool begins, const std::string& phase, const explain::Said& said,
                   std::int64_t t);
  trace::Event event(std::string ev, trace::json body, std::int64_t t_ns) const;
  void figures(const explain::Reading& reading, std::int64_t t_ns);
  void fault(const explain::Reading& reading);
  std::optional<int> rank_of(std::optional<int> printed) const;

  LogMember member_;
  EventSink& sink_;
  std::unique_ptr<explain::Reader> reader_;
  std::map<std::string, int, std::less<>> sources_;              // stream → number
  std::map<std::string, std::string> phases_;                    // worker → phase it is in
  std::map<std::pair<int, std::int64_t>, std::int64_t> causes_;  // source, line → arrival
  std::optional<explain::Reading> before_end_;
  std::int64_t first_ns_ = 0, last_ns_ = 0;
  std::size_t skips_ = 0;
  std::atomic<std::int64_t> capture_end_ns_{0};
  bool ended_by_us_ = false;
  bool said_ready_ = false;
};

}  // namespace warmgate::target
