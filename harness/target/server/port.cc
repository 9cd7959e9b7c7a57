#include "harness/target/server/port.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <random>
#include <set>
#include <stdexcept>

#include "harness/target/sweep.h"

namespace warmgate::target {
namespace {

constexpr int kLowest = 12000;  // above what services and their test set-ups use by habit
constexpr int kTries = 2000;

// The first port that the kernel gives to outgoing connections.
int ephemeral_begin() {
  std::ifstream in("/proc/sys/net/ipv4/ip_local_port_range");
  int low = 0;
  return in >> low && low > 1024 ? low : 32768;
}

Fd lease_name(int port) {
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // A leading zero byte: no file.
  const int size =
      std::snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "warmgate-port-%d", port);
  const auto length =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<std::size_t>(size));
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  if (!fd.valid() || ::bind(fd.get(), generic, length) != 0) return Fd();
  return fd;
}

// Could a server bind and listen there? Like most servers, with SO_REUSEADDR: connections that are
// still closing are no obstacle.
bool can_listen(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.empty() ? nullptr : host.c_str(), std::to_string(port).c_str(), &hints,
                    &found) != 0) {
    return true;  // an address that is not ours: whoever is there will say
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(found, ::freeaddrinfo);
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    const Fd fd(::socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, one->ai_protocol));
    if (!fd.valid()) continue;
    const int on = 1;
    ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (one->ai_family == AF_INET6) {
      ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    }
    const bool bound = ::bind(fd.get(), one->ai_addr, one->ai_addrlen) == 0;
    if (!bound && errno == EADDRINUSE) return false;
    if (bound && ::listen(fd.get(), 1) != 0 && errno == EADDRINUSE) return false;
  }
  return true;
}

// Inodes of the sockets that listen on this port, on whatever address.
std::set<unsigned long> listeners(int port) {
  std::set<unsigned long> out;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream in(table);
    std::string line;
    std::getline(in, line);
    while (std::getline(in, line)) {
      unsigned local = 0, state = 0;
      unsigned long inode = 0;
      const int read = std::sscanf(line.c_str(),
                                   " %*[^:]: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*s %*s %*s "
                                   "%*s %*s %lu",
                                   &local, &state, &inode);
      if (read == 3 && state == 0x0A && local == static_cast<unsigned>(port)) out.insert(inode);
    }
  }
  return out;
}

bool has_socket(pid_t pid, const std::set<unsigned long>& inodes) {
  const std::string folder = "/proc/" + std::to_string(pid) + "/fd";
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(folder.c_str()), ::closedir);
  if (!dir) return false;
  while (const dirent* entry = ::readdir(dir.get())) {
    char target[64];
    const ssize_t n = ::readlink((folder + "/" + entry->d_name).c_str(), target, sizeof target - 1);
    unsigned long inode = 0;
    if (n <= 0) continue;
    target[n] = '\0';
    if (std::sscanf(target, "socket:[%lu]", &inode) == 1 && inodes.count(inode) > 0) return true;
  }
  return false;
}

}  // namespace

PortLease PortLease::free_port(const std::string& host) {
  const int end = ephemeral_begin();
  const int begin = end - kLowest >= 1000 ? kLowest : 1025;
  const int last = end - begin >= 100 ? end - 1 : 65535;
  std::minstd_rand random(std::random_device{}());
  std::uniform_int_distribution<int> any(begin, last);
  for (int i = 0; i < kTries; ++i) {
    const int port = any(random);
    PortLease out = take(port);
    // On every address, not on `host` alone: engines open helpers on others with the same number.
    if (out.held() && can_listen("", port) && can_listen(host, port)) return out;
  }
  throw std::runtime_error(fmt::format("no free port for {} between {} and {}, tried {} times",
                                       host, begin, last, kTries));
}

PortLease PortLease::take(int port) {
  PortLease out;
  out.port_ = port;
  out.name_ = lease_name(port);
  return out;
}

std::optional<Listener> listener_of(const std::string& host, int port) {
  if (can_listen(host, port)) return std::nullopt;
  const std::set<unsigned long> inodes = listeners(port);
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir("/proc"), ::closedir);
  while (const dirent* entry = proc ? ::readdir(proc.get()) : nullptr) {
    const pid_t pid = static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10));
    ProcessInfo info;
    if (pid <= 0 || !has_socket(pid, inodes) || !read_process(pid, info, true)) continue;
    return Listener{pid, fmt::format("pid {} ({})", pid,
                                     info.command.empty() ? "no command line" : info.command)};
  }
  return Listener{0, inodes.empty() ? "somebody who does not listen on it"
                                    : "a process of another user or container"};
}

std::optional<std::string> who_listens(const std::string& host, int port) {
  const auto listener = listener_of(host, port);
  return listener ? std::optional(listener->text) : std::nullopt;
}

}  // namespace warmgate::target
