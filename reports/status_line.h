// Progress on long work. On a terminal one line that is rewritten; elsewhere a plain line now and
// then, because a log keeps every one of them. Work that is over within a second shows nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

#include "reports/printer.h"

namespace warmgate::reports {

class StatusLine {
 public:
  struct Options {
    bool terminal = false;
    Style style;
    double quiet_s = 1;  // nothing before
    double plain_s = 5;  // off a terminal: at most one line in this time
    double rewrite_s = 0.05;
  };
  using Write = std::function<void(std::string_view)>;
  using Clock = std::function<double()>;  // seconds, monotonic

  StatusLine(Options options, Write write, Clock clock);
  /// Clears the line.
  ~StatusLine();
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  /// What is going on now. Thread-safe, as all of it.
  void update(std::string text);
  /// Called now and then, so that the elapsed time moves while nothing else does.
  void tick();
  /// Takes the line away; later calls show nothing. For the report, or before any other output.
  void finish();

 private:
  void show(double now);
  Options options_;
  Write write_;
  Clock clock_;
  std::mutex mutex_;
  std::string text_;
  double start_, last_ = -1;
  bool drawn_ = false, done_ = false;
};

}  // namespace warmgate::reports
