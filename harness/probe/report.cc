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

void Report::hello() {
  struct stat file {};
  if (::fstat(writer_.descriptor(), &file) == 0) {
    device_ = file.st_dev;
    inode_ = file.st_ino;
  }
  if (!may_write(1024)) return;
  writer_.send(line("hello")
                   .str("schema", trace::kEventsSchema)
                   .str("engine", "warmgate-probe")
                   .null("world")
                   .strings("emits", {"context", "module", "load", "capture", "graph"}));
}

bool Report::may_write(std::size_t bytes) {
  struct stat file {};
  if (off()) return false;
  bool fine =
      ::fstat(writer_.descriptor(), &file) == 0 && file.st_dev == device_ && file.st_ino == inode_;
  rlimit most{};
  if (fine && S_ISREG(file.st_mode) && ::getrlimit(RLIMIT_FSIZE, &most) == 0 &&
      most.rlim_cur != RLIM_INFINITY) {
    fine = static_cast<rlim_t>(file.st_size) + bytes <= most.rlim_cur;
  }
  if (!fine) off_.store(true);
  return fine;
}

trace::Line Report::line(std::string_view ev) {
  trace::Line out(ev);
  out.str("src", "probe").num("pid", ::getpid()).num("tid", thread_id());
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
  const auto counter = [&](std::string_view name, double value) {
    writer_.send(line("counter").str("name", name).real("value", value));
  };
  counter("probe_own_ms", static_cast<double>(own_ns) / 1e6);
  counter("probe_calls", static_cast<double>(calls));
  counter("probe_lines_dropped", static_cast<double>(dropped_));
  writer_.send(line("bye"));
}

}  // namespace warmgate::probe
