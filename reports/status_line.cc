#include "reports/status_line.h"

#include <fmt/format.h>

#include <utility>

namespace warmgate::reports {

StatusLine::StatusLine(Options options, Write write, Clock clock)
    : options_(options), write_(std::move(write)), clock_(std::move(clock)), start_(clock_()) {}

StatusLine::~StatusLine() { finish(); }

void StatusLine::update(std::string text) {
  const std::scoped_lock lock(mutex_);
  text_ = std::move(text);
  show(clock_());
}

void StatusLine::tick() {
  const std::scoped_lock lock(mutex_);
  show(clock_());
}

void StatusLine::show(double now) {
  if (done_ || text_.empty() || now - start_ < options_.quiet_s) return;
  const double gap = options_.terminal ? options_.rewrite_s : options_.plain_s;
  if (last_ >= 0 && now - last_ < gap) return;
  last_ = now;
  const std::string line = without_ci_commands(
      printable(fmt::format("{:.0f} s  {}", now - start_, text_), options_.style.charset));
  if (!options_.terminal) {
    write_(line + "\n");
    return;
  }
  // One column is left free: a full line would make some terminals wrap.
  const std::size_t width = options_.style.width > 1 ? options_.style.width - 1 : 1;
  write_("\r\x1b[K" + shorten(line, width, options_.style.charset));
  drawn_ = true;
}

void StatusLine::finish() {
  const std::scoped_lock lock(mutex_);
  if (drawn_) write_("\r\x1b[K");
  drawn_ = false;
  done_ = true;
}

}  // namespace warmgate::reports
