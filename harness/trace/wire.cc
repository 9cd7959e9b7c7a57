#include "harness/trace/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace warmgate::trace {
namespace {

// Length of the valid UTF-8 sequence that starts at text[i], 0 if there is none.
std::size_t utf8_length(std::string_view text, std::size_t i) {
  const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(text[k]); };
  const unsigned char first = byte(i);
  std::size_t n = first < 0x80                    ? 1
                  : first >= 0xC2 && first < 0xE0 ? 2
                  : first >= 0xE0 && first < 0xF0 ? 3
                  : first >= 0xF0 && first < 0xF5 ? 4
                                                  : 0;
  if (n == 0 || i + n > text.size()) return 0;
  for (std::size_t k = 1; k < n; ++k) {
    if ((byte(i + k) & 0xC0) != 0x80) return 0;
  }
  // Overlong forms, surrogates and values past U+10FFFF.
  if (n == 3 && ((first == 0xE0 && byte(i + 1) < 0xA0) || (first == 0xED && byte(i + 1) >= 0xA0)))
    return 0;
  if (n == 4 && ((first == 0xF0 && byte(i + 1) < 0x90) || (first == 0xF4 && byte(i + 1) >= 0x90)))
    return 0;
  return n;
}

void append_int(std::string& out, std::int64_t value) {
  char buffer[24];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  out.append(buffer, end);
}

}  // namespace

std::int64_t now_ns() {
  timespec ts{};
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return static_cast<std::int64_t>(ts.tv_sec) * 1000000000 + ts.tv_nsec;
}

namespace {

bool is_plain(char c) {
  return c >= 0x20 && c != '"' && c != '\\' && static_cast<unsigned char>(c) < 0x7f;
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  for (std::size_t i = 0; i < text.size();) {
    // Names and numbers, nearly always: what needs no look goes over in one piece.
    std::size_t plain = i;
    while (plain < text.size() && is_plain(text[plain])) ++plain;
    if (plain > i) {
      out.append(text, i, plain - i);
      i = plain;
      continue;
    }
    const unsigned char c = static_cast<unsigned char>(text[i]);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
      ++i;
    } else if (c == '\n') {
      out += "\\n";
      ++i;
    } else if (c < 0x20) {
      char buffer[8];
      std::snprintf(buffer, sizeof buffer, "\\u%04x", c);
      out += buffer;
      ++i;
    } else if (const std::size_t n = utf8_length(text, i); n > 0) {
      out.append(text, i, n);
      i += n;
    } else {
      out += "\xEF\xBF\xBD";
      ++i;
    }
  }
  out += '"';
}

Line::Line(std::string_view ev) {
  text_.reserve(192);
  text_ = "{\"ev\":";
  append_json_string(text_, ev);
}

void Line::key(std::string_view name) {
  text_ += ',';
  append_json_string(text_, name);
  text_ += ':';
}

Line& Line::str(std::string_view k, std::string_view value) {
  key(k);
  append_json_string(text_, value);
  return *this;
}

Line& Line::num(std::string_view k, std::int64_t value) {
  key(k);
  append_int(text_, value);
  return *this;
}

Line& Line::real(std::string_view k, double value) {
  key(k);
  if (!std::isfinite(value)) {
    text_ += "null";
    return *this;
  }
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  text_.append(buffer, end);
  return *this;
}

Line& Line::flag(std::string_view k, bool value) {
  key(k);
  text_ += value ? "true" : "false";
  return *this;
}

Line& Line::null(std::string_view k) {
  key(k);
  text_ += "null";
  return *this;
}

Line& Line::strings(std::string_view k, const std::vector<std::string>& values) {
  key(k);
  text_ += '[';
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) text_ += ',';
    append_json_string(text_, values[i]);
  }
  text_ += ']';
  return *this;
}

Line& Line::numbers(std::string_view k, const std::vector<std::int64_t>& values) {
  key(k);
  text_ += '[';
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) text_ += ',';
    append_int(text_, values[i]);
  }
  text_ += ']';
  return *this;
}

Line& Line::raw(std::string_view k, std::string_view made) {
  key(k);
  text_ += made;
  return *this;
}

EventWriter::~EventWriter() {
  if (owned_ && fd_ >= 0) ::close(fd_);
}

bool EventWriter::open_from_environment() {
  if (const char* spec = std::getenv("WARMGATE_EVENTS_FD")) {
    int fd = -1;
    unsigned long long inode = 0;
    struct stat st {};
    // The inode guards against a descriptor number that now means something else.
    if (std::sscanf(spec, "%d:%llu", &fd, &inode) == 2 && fd >= 0 && ::fstat(fd, &st) == 0 &&
        S_ISFIFO(st.st_mode) && static_cast<unsigned long long>(st.st_ino) == inode) {
      fd_ = fd;
      // Children of the worker must not hold the channel open after it died.
      ::fcntl(fd, F_SETFD, FD_CLOEXEC);
      return true;
    }
  }
  const char* dir = std::getenv("WARMGATE_EVENTS_DIR");
  return dir != nullptr && open_in(dir);
}

bool EventWriter::open_in(const char* folder) {
  char host[256] = "host";
  ::gethostname(host, sizeof host - 1);
  const std::string path = std::string(folder) + "/" + host + "." + std::to_string(::getpid()) +
                           "." + std::to_string(now_ns()) + ".jsonl";
  fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  owned_ = fd_ >= 0;
  return owned_;
}

void EventWriter::open_descriptor(int fd) {
  fd_ = fd;
  owned_ = false;
}

void EventWriter::write_line(const std::string& text) {
  const char* data = text.data();
  std::size_t left = text.size();
  while (left > 0) {  // a pipe may take a long line in pieces
    const ssize_t n = ::write(fd_, data, left);
    if (n > 0) {
      data += n;
      left -= static_cast<std::size_t>(n);
    } else if (n < 0 && errno == EINTR) {
      continue;
    } else {
      return;  // the reader is gone; the engine goes on without it
    }
  }
}

void EventWriter::hello(std::string_view engine, std::optional<int> rank, std::optional<int> world,
                        const std::vector<std::string>& emits) {
  if (rank) rank_ = std::to_string(*rank);
  Line line("hello");
  line.str("schema", kEventsSchema).str("engine", engine).num("pid", ::getpid());
  if (world)
    line.num("world", *world);
  else
    line.null("world");
  line.strings("emits", emits);
  send(line);
}

void EventWriter::send(const Line& line, std::int64_t t_ns) {
  if (fd_ < 0) return;
  const std::string& text = line.text();
  const auto is = [&](std::string_view ev) {
    const std::string_view rest = std::string_view(text).substr(7);  // after {"ev":"
    return rest.substr(0, ev.size()) == ev && rest.substr(ev.size(), 1) == "\"";
  };
  if (lines_ >= kMaxLinesPerRun) {
    if (lines_ == kMaxLinesPerRun) {
      ++lines_;
      send(Line("fault")
               .str("type", "too_many_lines")
               .str("message", "more than 20,000 events in one run"));
    }
    if (!is("fault") && !is("phase_end") && !is("bye")) return;
  }
  buffer_ = text;
  buffer_ += ",\"t\":";
  append_int(buffer_, t_ns != 0 ? t_ns : now_ns());
  buffer_ += ",\"rank\":";
  buffer_ += rank_;
  buffer_ += "}\n";
  if (buffer_.size() > kMaxLineBytes) {
    send(Line("fault")
             .str("type", "line_too_long")
             .num("bytes", static_cast<std::int64_t>(buffer_.size()))
             .str("message", "an event over 1 MiB was dropped"));
    return;
  }
  ++lines_;
  write_line(buffer_);
}

void EventWriter::bye() { send(Line("bye")); }

}  // namespace warmgate::trace
