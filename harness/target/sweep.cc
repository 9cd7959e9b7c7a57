#include "harness/target/sweep.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string_view>
#include <thread>

#include "harness/target/fd.h"

namespace warmgate::target {
namespace {

std::string read_file(const std::string& path, std::size_t limit) {
  std::string out;
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return out;
  char buffer[8192];
  while (out.size() < limit) {
    const ssize_t n = ::read(fd.get(), buffer, std::min(sizeof buffer, limit - out.size()));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    out.append(buffer, static_cast<std::size_t>(n));
  }
  return out;
}

std::string proc(pid_t pid, const char* file) {
  return "/proc/" + std::to_string(pid) + "/" + file;
}

// Numbered entries of a folder of /proc.
std::vector<pid_t> numbers(const std::string& folder) {
  std::vector<pid_t> out;
  DIR* dir = ::opendir(folder.c_str());
  if (dir == nullptr) return out;
  while (const dirent* entry = ::readdir(dir)) {
    const std::string_view name = entry->d_name;
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error == std::errc() && end == name.data() + name.size()) out.push_back(pid);
  }
  ::closedir(dir);
  return out;
}

struct Registry {
  std::mutex mutex;
  std::set<pid_t> workers;
  // Dead children of ours that belong to no run we can name, and when each was first seen.
  std::map<pid_t, std::chrono::steady_clock::time_point> strangers;
};

Registry& registry() {
  static Registry instance;
  return instance;
}

bool is_worker(pid_t pid) {
  const std::lock_guard lock(registry().mutex);
  return registry().workers.count(pid) > 0;
}

// A dead child in a group of its own, of no run that we know: most likely an orphan whose family is
// gone. But another part of this program may be about to wait for it; if nobody has for a while,
// nobody will.
void reap_stranger(const ProcessInfo& process) {
  if (process.group == ::getpgrp()) return;
  const auto now = std::chrono::steady_clock::now();
  const std::lock_guard lock(registry().mutex);
  const auto [entry, fresh] = registry().strangers.try_emplace(process.pid, now);
  if (!fresh && now - entry->second > std::chrono::milliseconds(500)) {
    ::waitpid(process.pid, nullptr, WNOHANG);
    registry().strangers.erase(entry);
  }
}

}  // namespace

bool read_process(pid_t pid, ProcessInfo& out, bool with_command) {
  const std::string stat = read_file(proc(pid, "stat"), 4096);
  // The name stands in parentheses and may hold any byte, also ") S 1".
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return false;
  out.pid = pid;
  unsigned long long start = 0;
  int parent = 0, group = 0, session = 0;
  if (std::sscanf(stat.c_str() + name_end + 1,
                  " %c %d %d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
                  &out.state, &parent, &group, &session, &start) != 5) {
    return false;
  }
  out.parent = parent;
  out.group = group;
  out.session = session;
  out.start_ticks = start;
  if (with_command) {
    out.command = read_file(proc(pid, "cmdline"), 300);
    while (!out.command.empty() && out.command.back() == '\0') out.command.pop_back();
    std::replace(out.command.begin(), out.command.end(), '\0', ' ');
    if (out.command.empty()) {
      const std::size_t name = stat.find('(');
      out.command = '[';
      out.command.append(stat, name + 1, name_end - name - 1).append("]");
    }
  }
  return true;
}

std::vector<pid_t> children_of(pid_t pid) {
  static const bool listed = ::access("/proc/thread-self/children", R_OK) == 0;
  std::vector<pid_t> out;
  if (listed) {
    for (const pid_t thread : numbers(proc(pid, "task"))) {
      const std::string text =
          read_file(proc(pid, "task/") + std::to_string(thread) + "/children", 1u << 20);
      for (const char* at = text.c_str(); *at != '\0';) {
        char* end = nullptr;
        const long child = std::strtol(at, &end, 10);
        if (end == at) break;
        out.push_back(static_cast<pid_t>(child));
        at = *end == ' ' ? end + 1 : end;
      }
    }
    return out;
  }
  // A kernel without CONFIG_PROC_CHILDREN: ask everybody for their parent.
  for (const pid_t other : numbers("/proc")) {
    ProcessInfo info;
    if (read_process(other, info) && info.parent == pid) out.push_back(other);
  }
  return out;
}

bool has_environment(pid_t pid, const std::string& entry) {
  std::string text = read_file(proc(pid, "environ"), 4u << 20);
  // In the middle of an exec there is no environment to read yet; it comes within microseconds.
  for (int look = 0; text.empty() && look < 5; ++look) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    text = read_file(proc(pid, "environ"), 4u << 20);
  }
  for (std::size_t at = text.find(entry); at != std::string::npos; at = text.find(entry, at + 1)) {
    const std::size_t end = at + entry.size();
    if ((at == 0 || text[at - 1] == '\0') && (end == text.size() || text[end] == '\0')) return true;
  }
  return false;
}

void become_subreaper() {
  static const bool done = [] {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    struct sigaction action {};
    if (::sigaction(SIGCHLD, nullptr, &action) == 0 &&
        (action.sa_handler == SIG_IGN || (action.sa_flags & SA_NOCLDWAIT) != 0)) {
      action.sa_handler = SIG_DFL;
      action.sa_flags = 0;
      ::sigaction(SIGCHLD, &action, nullptr);
    }
    return true;
  }();
  (void)done;
}

void register_worker(pid_t pid) {
  const std::lock_guard lock(registry().mutex);
  registry().workers.insert(pid);
  registry().strangers.erase(pid);
}

void forget_worker(pid_t pid) {
  const std::lock_guard lock(registry().mutex);
  registry().workers.erase(pid);
}

void Orphans::add_group(pid_t group) {
  if (group != ::getpgrp()) groups_.insert(group);
}

std::vector<ProcessInfo> Orphans::find() {
  std::vector<ProcessInfo> found;
  // What a later look teaches about groups may claim what an earlier one left, and who died since
  // the list was made may have left us children: look again until nothing is new.
  std::set<pid_t> dead;
  for (bool learned = true; learned;) {
    learned = false;
    found.clear();
    for (const pid_t pid : children_of(::getpid())) {
      ProcessInfo info;
      if (is_worker(pid)) continue;
      if (!read_process(pid, info)) {
        learned |= dead.insert(pid).second;
        continue;
      }
      const bool kin = groups_.count(info.group) > 0 || groups_.count(info.session) > 0;
      if (info.state == 'Z' || info.state == 'X') {
        learned |= dead.insert(pid).second;
        if (kin) {
          ::waitpid(pid, nullptr, WNOHANG);
        } else {
          reap_stranger(info);
        }
        continue;
      }
      if (!kin && !has_environment(pid, marker_)) continue;
      // Never the group or session of this program: everything here has those.
      if (info.group != ::getpgrp()) learned |= groups_.insert(info.group).second;
      if (info.session != ::getsid(0)) learned |= groups_.insert(info.session).second;
      found.push_back(std::move(info));
    }
  }
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (const pid_t pid : children_of(found[i].pid)) {
      ProcessInfo info;
      if (read_process(pid, info) && info.state != 'Z') found.push_back(std::move(info));
    }
  }
  for (ProcessInfo& info : found) read_process(info.pid, info, true);
  return found;
}

std::size_t Orphans::kill_all(int rounds) {
  std::vector<ProcessInfo> left = find();
  for (int round = 0; round < rounds && !left.empty(); ++round) {
    // Nobody but us waits for the direct ones, so their numbers cannot have been given away; the
    // ones below become direct when their parents are gone.
    for (const ProcessInfo& process : left) {
      if (process.parent == ::getpid()) ::kill(process.pid, SIGKILL);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    left = find();
  }
  return left.size();
}

std::vector<ProcessInfo> holders_of_pipes(const std::vector<std::uint64_t>& inodes) {
  std::vector<ProcessInfo> out;
  for (const pid_t pid : numbers("/proc")) {
    if (pid == ::getpid()) continue;
    for (const pid_t fd : numbers(proc(pid, "fd"))) {
      char target[64];
      const std::string path = proc(pid, "fd/") + std::to_string(fd);
      const ssize_t n = ::readlink(path.c_str(), target, sizeof target - 1);
      if (n <= 0) continue;
      target[n] = '\0';
      unsigned long long inode = 0;
      if (std::sscanf(target, "pipe:[%llu]", &inode) != 1) continue;
      if (std::find(inodes.begin(), inodes.end(), inode) == inodes.end()) continue;
      ProcessInfo info;
      if (read_process(pid, info, true)) out.push_back(std::move(info));
      break;
    }
  }
  return out;
}

}  // namespace warmgate::target
