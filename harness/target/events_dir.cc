#include "harness/target/events_dir.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>

namespace warmgate::target {

namespace fs = std::filesystem;

namespace {

// Closing an inotify descriptor waits for a grace period of the kernel (7 to 25 ms were measured,
// ten times the rest of a run), so they are kept for the next run instead.
class InotifyPool {
 public:
  Fd take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return Fd(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
    Fd fd = std::move(free_.back());
    free_.pop_back();
    return fd;
  }
  void give_back(Fd fd) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(fd));
  }

 private:
  std::mutex mutex_;
  std::vector<Fd> free_;
};

InotifyPool& pool() {
  static auto* instance = new InotifyPool;  // never closed: that would be the wait again
  return *instance;
}

void empty(const Fd& inotify) {
  char notes[8192];
  while (::read(inotify.get(), notes, sizeof notes) > 0) {
  }
}

}  // namespace

EventsDir::EventsDir(fs::path folder, trace::Trace& trace, const std::vector<std::string>& secrets)
    : folder_(std::move(folder)), trace_(trace), secrets_(secrets), inotify_(pool().take()) {
  if (!inotify_.valid()) return;
  empty(inotify_);
  watch_ =
      ::inotify_add_watch(inotify_.get(), folder_.c_str(), IN_CREATE | IN_MODIFY | IN_MOVED_TO);
  if (watch_ < 0) pool().give_back(std::move(inotify_));
}

EventsDir::~EventsDir() {
  if (!inotify_.valid()) return;
  ::inotify_rm_watch(inotify_.get(), watch_);
  pool().give_back(std::move(inotify_));
}

bool EventsDir::poll() {
  char notes[8192];  // only that there were some matters
  bool changed = !inotify_.valid();
  while (inotify_.valid() && ::read(inotify_.get(), notes, sizeof notes) > 0) changed = true;
  if (!changed) return false;
  look();
  bool any = false;
  for (auto& [name, file] : files_) any |= drain(file);
  return any;
}

void EventsDir::look() {
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(folder_, failed)) {
    const std::string name = entry.path().filename();
    if (!name.ends_with(".jsonl") || files_.count(name) > 0) continue;
    if (files_.size() >= kMaxFiles) {
      if (!too_many_) {
        trace_.bad_lines.push_back(
            {name, 1, "more than 256 event files in one run; the rest is not read", ""});
      }
      too_many_ = true;
      return;
    }
    File file;
    file.fd = Fd(::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat info {};
    // Not a pipe or a device that someone put there: reading it would never end.
    if (!file.fd.valid() || ::fstat(file.fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
      file.fd.reset();
    }
    file.reader = std::make_unique<trace::LineReader>(name, trace_);
    file.reader->refuse_harness();
    file.spotter = std::make_unique<SecretSpotter>(secrets_);
    files_.emplace(name, std::move(file));
  }
}

bool EventsDir::drain(File& file) {
  bool any = false;
  char buffer[65536];
  while (file.fd.valid()) {
    const ssize_t n = ::read(file.fd.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    any = true;
    const std::string_view bytes(buffer, static_cast<std::size_t>(n));
    file.spotter->feed(bytes);
    if (trace_.events.size() < kMaxEvents) file.reader->feed(bytes);
  }
  return any;
}

void EventsDir::finish() {
  look();
  for (auto& [name, file] : files_) {
    drain(file);
    file.reader->finish();
  }
  std::error_code failed;
  std::vector<fs::path> last;
  for (const auto& entry : fs::directory_iterator(folder_, failed)) {
    if (entry.path().extension() == ".last" && last.size() < kMaxFiles)
      last.push_back(entry.path());
  }
  std::sort(last.begin(), last.end());  // so that reading has one order
  for (const fs::path& path : last) read_last(path);
}

// Records that were replaced in place: a place never used is empty, and one that its writer died in
// is half a line. Neither is a mistake of anybody's.
void EventsDir::read_last(const fs::path& path) {
  constexpr std::size_t kMost = 1 << 20;
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat info {};
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return;
  std::string all(std::min(kMost, static_cast<std::size_t>(info.st_size)), '\0');
  const ssize_t n = ::pread(fd.get(), all.data(), all.size(), 0);
  all.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  SecretSpotter spotter(secrets_);
  spotter.feed(all);
  last_secret_ |= spotter.seen();
  std::size_t number = 0;
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t end = std::min(all.find('\n', at), all.size());
    std::string_view line(all.data() + at, end - at);
    at = end + 1;
    ++number;
    line.remove_prefix(std::min(line.find_first_not_of('\0'), line.size()));
    if (line.empty() || trace_.events.size() >= kMaxEvents) continue;
    try {
      trace::Event event = trace::parse_event(line);
      event.source = path.filename();
      event.line = number;
      trace_.events.push_back(std::move(event));
    } catch (const std::exception&) {
    }
  }
}

bool EventsDir::saw_secret() const {
  return last_secret_ || std::any_of(files_.begin(), files_.end(), [](const auto& entry) {
           return entry.second.spotter->seen();
         });
}

}  // namespace warmgate::target
