#include "harness/target/remains.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string_view>

namespace warmgate::target {
namespace {

constexpr std::size_t kMostLookedAt = 1000;

std::vector<std::string> entries_of(const std::string& folder) {
  std::vector<std::string> out;
  DIR* dir = ::opendir(folder.c_str());
  if (dir == nullptr) return out;
  while (const dirent* entry = ::readdir(dir)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") out.emplace_back(name);
  }
  ::closedir(dir);
  return out;
}

pid_t number(std::string_view text) {
  pid_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : 0;
}

std::string link_target(const std::string& path) {
  char target[512];
  const ssize_t n = ::readlink(path.c_str(), target, sizeof target);
  return n <= 0 ? std::string() : std::string(target, static_cast<std::size_t>(n));
}

std::string proc(pid_t pid, const char* what) {
  return "/proc/" + std::to_string(pid) + "/" + what;
}

// Files of `folder` that this process has open or mapped.
void add_used(pid_t pid, const std::string& folder, std::map<std::string, pid_t>& out) {
  const std::string fds = proc(pid, "fd"), below = folder + "/";
  for (const std::string& fd : entries_of(fds)) {
    const std::string target = link_target(fds + "/" + fd);
    if (target.rfind(below, 0) == 0) out.emplace(target, pid);
  }
  std::ifstream maps(proc(pid, "maps"));
  for (std::string line; std::getline(maps, line);) {
    const std::size_t at = line.find(" " + below);
    if (at != std::string::npos) out.emplace(line.substr(at + 1), pid);
  }
}

std::vector<pid_t> processes() {
  std::vector<pid_t> out;
  for (const std::string& name : entries_of("/proc")) {
    if (const pid_t pid = number(name); pid > 0) out.push_back(pid);
  }
  return out;
}

// A pid as a number of its own: 123 in torch_123_4, not in a1234.
pid_t pid_in(const std::string& name, const std::set<pid_t>& pids) {
  for (std::size_t i = 0; i < name.size();) {
    std::size_t end = i;
    while (end < name.size() && std::isdigit(static_cast<unsigned char>(name[end])) != 0) ++end;
    const bool word = i > 0 && std::isalpha(static_cast<unsigned char>(name[i - 1])) != 0;
    const bool more = end < name.size() && std::isalpha(static_cast<unsigned char>(name[end])) != 0;
    // Short numbers are counters of somebody, whatever pid they happen to be.
    if (end - i >= 3 && !word && !more) {
      const pid_t pid = number(std::string_view(name).substr(i, end - i));
      if (pids.count(pid) > 0) return pid;
    }
    i = end > i ? end : i + 1;
  }
  return 0;
}

// "0100007F:1F90" of /proc/net/tcp → "127.0.0.1:8080". The address is in the machine's byte order,
// word by word.
std::string endpoint(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon != 8 && colon != 32) return "";
  unsigned port = 0;
  if (std::sscanf(text.c_str() + colon, ":%x", &port) != 1) return "";
  std::uint32_t words[4] = {};
  for (std::size_t i = 0; i < colon / 8; ++i) {
    if (std::sscanf(text.substr(i * 8, 8).c_str(), "%x", &words[i]) != 1) return "";
  }
  char address[INET6_ADDRSTRLEN] = "";
  const bool v6 = colon == 32;
  if (::inet_ntop(v6 ? AF_INET6 : AF_INET, words, address, sizeof address) == nullptr) return "";
  return (v6 ? "[" + std::string(address) + "]" : std::string(address)) + ":" +
         std::to_string(port);
}

}  // namespace

SharedMemoryWatch::SharedMemoryWatch(std::string folder)
    : folder_(std::move(folder)), before_(names()) {}

std::map<std::string, std::uint64_t> SharedMemoryWatch::names() const {
  std::map<std::string, std::uint64_t> out;
  DIR* dir = ::opendir(folder_.c_str());
  if (dir == nullptr) return out;
  while (const dirent* entry = ::readdir(dir)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") out.emplace(name, entry->d_ino);
  }
  ::closedir(dir);
  return out;
}

std::vector<SharedMemory> SharedMemoryWatch::fresh(const std::set<pid_t>& pids,
                                                   const std::set<pid_t>& left,
                                                   std::size_t most) const {
  std::vector<SharedMemory> out;
  for (const auto& [name, inode] : names()) {
    const auto known = before_.find(name);
    if (known != before_.end() && known->second == inode) continue;
    SharedMemory found;
    found.path = folder_ + "/" + name;
    struct stat info {};
    if (::lstat(found.path.c_str(), &info) != 0 || info.st_uid != ::geteuid()) continue;
    if (const pid_t pid = pid_in(name, pids); pid > 0) {
      found.of_run = true;
      found.why = "its name holds pid " + std::to_string(pid) + " of the run";
    }
    out.push_back(std::move(found));
    if (out.size() >= kMostLookedAt) break;
  }
  if (std::all_of(out.begin(), out.end(), [](const SharedMemory& each) { return each.of_run; })) {
    out.resize(std::min(out.size(), most));
    return out;
  }
  // Who uses them; reading this of every process takes milliseconds, so once for all.
  std::map<std::string, pid_t> of_left, of_others;
  for (const pid_t pid : left) add_used(pid, folder_, of_left);
  for (const pid_t pid : processes()) {
    if (left.count(pid) == 0) add_used(pid, folder_, of_others);
  }
  std::erase_if(out, [&](SharedMemory& each) {
    if (each.of_run) return false;
    if (const auto user = of_left.find(each.path); user != of_left.end()) {
      each.of_run = true;
      each.why = "pid " + std::to_string(user->second) + ", which the run left, uses it";
      return false;
    }
    each.why =
        "new since the run began, of this user, in use by nobody; whose it is cannot be told";
    return of_others.count(each.path) > 0;
  });
  out.resize(std::min(out.size(), most));
  return out;
}

std::vector<std::string> listening_ports(pid_t pid) {
  std::set<std::string> sockets;  // inodes
  const std::string folder = proc(pid, "fd");
  for (const std::string& fd : entries_of(folder)) {
    const std::string target = link_target(folder + "/" + fd);
    if (target.rfind("socket:[", 0) == 0) sockets.insert(target.substr(8, target.size() - 9));
  }
  std::set<std::string> out;
  if (sockets.empty()) return {};
  for (const char* table : {"net/tcp", "net/tcp6"}) {
    std::ifstream in(proc(pid, table));
    std::string line;
    std::getline(in, line);  // the names of the columns
    while (std::getline(in, line)) {
      char local[64], remote[64], state[8], inode[32];
      if (std::sscanf(line.c_str(), " %*s %63s %63s %7s %*s %*s %*s %*s %*s %31s", local, remote,
                      state, inode) != 4)
        continue;
      constexpr const char* kListen = "0A";
      if (std::strcmp(state, kListen) != 0 || sockets.count(inode) == 0) continue;
      if (std::string text = endpoint(local); !text.empty()) out.insert(std::move(text));
    }
  }
  return {out.begin(), out.end()};
}

}  // namespace warmgate::target
