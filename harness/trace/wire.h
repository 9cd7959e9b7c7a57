// The event protocol's writing half, version 1: JSON Lines, one write(2) a line, nothing buffered.
// The engine, the kernels and the probes link this and nothing else of trace/, so it depends on
// nothing: it formats its own JSON (0.5 us a line, where a general library takes 2 to 4).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace warmgate::trace {

inline constexpr std::string_view kEventsSchema = "events/1.0";
inline constexpr std::size_t kMaxLineBytes = 1u << 20;
inline constexpr std::size_t kMaxLinesPerRun = 20000;

/// Nanoseconds of the machine's monotonic clock; comparable between processes of one machine.
std::int64_t now_ns();

/// Appends `text` to `out` as a JSON string with quotes. Bytes that are not valid UTF-8 become
/// U+FFFD, so that a line is always legal JSON whatever a message carries.
void append_json_string(std::string& out, std::string_view text);

/// One event under construction. Fields keep the order of the calls; a key must not repeat.
class Line {
 public:
  explicit Line(std::string_view ev);
  Line& str(std::string_view key, std::string_view value);
  Line& num(std::string_view key, std::int64_t value);
  Line& real(std::string_view key, double value);  // NaN and infinities become null
  Line& flag(std::string_view key, bool value);
  Line& null(std::string_view key);
  Line& strings(std::string_view key, const std::vector<std::string>& values);
  Line& numbers(std::string_view key, const std::vector<std::int64_t>& values);
  /// `json` must be legal JSON on one line.
  Line& raw(std::string_view key, std::string_view json);
  const std::string& text() const { return text_; }  // without the closing brace

 private:
  void key(std::string_view name);
  std::string text_;
};

/// Where the lines go. Channel, in order: WARMGATE_EVENTS_FD=N:INODE (used only if fstat(N) is a
/// pipe with that inode), else a file `<host>.<pid>.<start time>.jsonl` in WARMGATE_EVENTS_DIR,
/// else nowhere (a worker started by hand runs all the same).
class EventWriter {
 public:
  EventWriter() = default;
  ~EventWriter();
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;

  /// Opens the channel that the environment names. False if there is none.
  bool open_from_environment();
  /// A file of its own in `folder`, whatever the environment says. False if it cannot be made.
  bool open_in(const char* folder);
  /// Uses a descriptor of the caller's, e.g. in tests. Not closed by the writer.
  void open_descriptor(int fd);
  bool is_open() const { return fd_ >= 0; }
  /// -1 if there is none. For handlers of fatal signals, which can only write(2).
  int descriptor() const { return fd_; }

  void hello(std::string_view engine, std::optional<int> rank, std::optional<int> world,
             const std::vector<std::string>& emits);
  /// Adds `t` (now, or `t_ns` if given) and the rank of hello(), and writes the line. A line over
  /// 1 MiB is replaced by a `fault` of type line_too_long; past 20,000 lines one `fault` of type
  /// too_many_lines is written and the rest, except `fault`, `phase_end` and `bye`, is dropped.
  void send(const Line& line, std::int64_t t_ns = 0);
  void bye();
  std::size_t lines() const { return lines_; }

 private:
  void write_line(const std::string& text);
  int fd_ = -1;
  bool owned_ = false;
  std::size_t lines_ = 0;
  std::string rank_ = "null";
  std::string buffer_;
};

}  // namespace warmgate::trace
