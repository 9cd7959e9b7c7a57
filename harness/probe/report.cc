#include "harness/probe/report.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace warmgate::probe {

long thread_id() {
  thread_local const long id = ::syscall(SYS_gettid);
  return id;
}

bool Report::open_from_environment() {
  // The host's own descriptor is left to the host: ours is a file beside it, one a process.
  const char* folder = ::secure_getenv("WARMGATE_EVENTS_DIR");
  if (folder == nullptr || !writer_.open_in(folder)) return false;
  hello();
  return true;
}

void Report::open_descriptor(int fd) {
  writer_.open_descriptor(fd);
  hello();
}

void OwnFile::remember(int fd) {
  struct stat file {};
  if (::fstat(fd, &file) != 0) return;
  device_ = file.st_dev;
  inode_ = file.st_ino;
}

bool OwnFile::may_write(int fd, std::size_t bytes, std::int64_t offset) const {
  struct stat file {};
  if (::fstat(fd, &file) != 0 || file.st_dev != device_ || file.st_ino != inode_) return false;
  rlimit most{};
  if (!S_ISREG(file.st_mode) || ::getrlimit(RLIMIT_FSIZE, &most) != 0 ||
      most.rlim_cur == RLIM_INFINITY) {
    return true;
  }
  const auto at = static_cast<rlim_t>(offset < 0 ? file.st_size : offset);
  return at + bytes <= most.rlim_cur;
}

void Report::hello() {
  file_.remember(writer_.descriptor());
  if (!may_write(1024)) return;
  writer_.send(line("hello", voice_.src)
                   .str("schema", trace::kEventsSchema)
                   .str("engine", voice_.engine)
                   .null("world")
                   .strings("emits", voice_.emits));
}

bool Report::may_write(std::size_t bytes) {
  if (off()) return false;
  const bool fine = file_.may_write(writer_.descriptor(), bytes);
  if (!fine) off_.store(true);
  return fine;
}

trace::Line Report::line(std::string_view ev, std::string_view src) {
  trace::Line out(ev);
  out.str("src", src).num("pid", ::getpid()).num("tid", thread_id());
  return out;
}

void Report::send(std::string_view ev, const trace::Line& line, std::int64_t t_ns) {
  if (off()) return;
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  for (Kind& kind : kinds_) {
    if (kind.name.empty()) kind.name = ev;
    if (kind.name != ev) continue;
    if (!may_write(line.text().size() + 64)) return;
    if (++kind.lines <= kMostOfAKind && writer_.lines() < kMost) {
      writer_.send(line, t_ns);
    } else {
      ++dropped_;
    }
    return;
  }
  ++dropped_;
}

void Report::close(std::int64_t own_ns, std::uint64_t calls) {
  if (off()) return;
  const std::lock_guard lock(mutex_);
  if (closed_ || !writer_.is_open() || !may_write(1024)) return;
  closed_ = true;
  const auto counter = [&](std::string_view what, double value) {
    writer_.send(line("counter", voice_.src)
                     .str("name", std::string(voice_.counters).append(what))
                     .real("value", value));
  };
  counter("_own_ms", static_cast<double>(own_ns) / 1e6);
  counter("_calls", static_cast<double>(calls));
  counter("_lines_dropped", static_cast<double>(dropped_));
  writer_.send(line("bye", voice_.src));
}

}  // namespace warmgate::probe
