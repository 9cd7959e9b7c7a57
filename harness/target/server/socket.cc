#include "harness/target/server/socket.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "harness/trace/wire.h"

namespace warmgate::target {
namespace {

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

void add_all(const addrinfo* list, std::vector<Address>& out) {
  for (const addrinfo* each = list; each != nullptr; each = each->ai_next) {
    if (each->ai_family != AF_INET && each->ai_family != AF_INET6) continue;
    Address address;
    std::memcpy(&address.storage, each->ai_addr, each->ai_addrlen);
    address.size = each->ai_addrlen;
    out.push_back(address);
  }
}

std::vector<Address> look_up(const std::string& host, int port, int flags, std::string& error) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int code = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  std::vector<Address> out;
  if (code != 0) {
    error = fmt::format("{}: {}", host, ::gai_strerror(code));
    return out;
  }
  add_all(list, out);
  ::freeaddrinfo(list);
  return out;
}

// getaddrinfo() of a name cannot be interrupted and may take half a minute where a name server is
// silent, so it gets a thread that is left behind if the deadline comes first.
std::vector<Address> resolve(const std::string& host, int port, std::int64_t until_ns,
                             const CancelToken* cancel, std::string& error) {
  std::string ignored;
  if (host == "localhost") {
    auto both = look_up("127.0.0.1", port, AI_NUMERICHOST, ignored);
    for (const Address& six : look_up("::1", port, AI_NUMERICHOST, ignored)) both.push_back(six);
    return both;
  }
  if (auto numeric = look_up(host, port, AI_NUMERICHOST, ignored); !numeric.empty()) return numeric;
  struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
    std::vector<Address> found;
    std::string error;
  };
  const auto shared = std::make_shared<Shared>();
  std::thread([shared, host, port] {
    std::string why;
    auto found = look_up(host, port, 0, why);
    const std::lock_guard lock(shared->mutex);
    shared->found = std::move(found);
    shared->error = std::move(why);
    shared->done = true;
    shared->changed.notify_all();
  }).detach();
  std::unique_lock lock(shared->mutex);
  while (!shared->done && trace::now_ns() < until_ns &&
         (cancel == nullptr || !cancel->cancelled())) {
    shared->changed.wait_for(lock, std::chrono::milliseconds(20));
  }
  if (!shared->done) {
    error = fmt::format("{}: the name was not resolved in time", host);
    return {};
  }
  error = shared->error;
  return shared->found;
}

}  // namespace

Waited Connection::wait(bool to_write, std::int64_t until_ns) {
  for (;;) {
    const std::int64_t left = until_ns - trace::now_ns();
    if (cancel_ != nullptr && cancel_->cancelled()) return Waited::kCancelled;
    if (left <= 0) return Waited::kDeadline;
    pollfd fds[2] = {{fd_.get(), static_cast<short>(to_write ? POLLOUT : POLLIN), 0},
                     {cancel_ != nullptr ? cancel_->fd() : -1, POLLIN, 0}};
    const auto ms = static_cast<int>(std::min<std::int64_t>((left + 999'999) / 1'000'000, 1 << 30));
    const int n = ::poll(fds, 2, ms);
    if (n < 0 && errno != EINTR) return Waited::kReady;  // the next call on the socket tells
    if (fds[1].revents != 0) return Waited::kCancelled;
    if (n > 0 && fds[0].revents != 0) return Waited::kReady;
  }
}

HttpEnd Connection::connect_to(const void* address, unsigned size, int family,
                               std::int64_t until_ns) {
  fd_ = Fd(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd_.valid()) {
    error_ = fmt::format("socket: {}", std::strerror(errno));
    return HttpEnd::kUnreachable;
  }
  const int on = 1;
  ::setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  int code = 0;
  if (::connect(fd_.get(), static_cast<const sockaddr*>(address), size) != 0) {
    code = errno;
    if (code == EINPROGRESS || code == EINTR) {
      const Waited waited = wait(true, until_ns);
      if (waited == Waited::kCancelled) return HttpEnd::kCancelled;
      if (waited == Waited::kDeadline) {
        error_ = "no connection in time";
        return HttpEnd::kUnreachable;
      }
      socklen_t length = sizeof code;
      code = 0;
      ::getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &code, &length);
    }
  }
  if (code == 0) return HttpEnd::kAnswered;
  error_ = std::strerror(code);
  return code == ECONNREFUSED ? HttpEnd::kRefused : HttpEnd::kUnreachable;
}

HttpEnd Connection::connect(const std::string& host, int port, std::int64_t until_ns) {
  if (port < 1 || port > 65535) {
    error_ = fmt::format("{} is no port", port);
    return HttpEnd::kUnreachable;
  }
  const auto addresses = resolve(host, port, until_ns, cancel_, error_);
  if (cancel_ != nullptr && cancel_->cancelled()) return HttpEnd::kCancelled;
  HttpEnd end = HttpEnd::kUnreachable;
  for (const Address& address : addresses) {
    const HttpEnd now =
        connect_to(&address.storage, address.size, address.storage.ss_family, until_ns);
    if (now == HttpEnd::kAnswered || now == HttpEnd::kCancelled) return now;
    // A machine without IPv6 says unreachable for ::1; that 127.0.0.1 refused says more.
    if (end != HttpEnd::kRefused) end = now;
  }
  fd_.reset();
  return end;
}

long Connection::send(std::string_view bytes) {
  for (;;) {
    const ssize_t n = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n >= 0) return n;
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return 0;
    error_ = std::strerror(errno);
    return -1;
  }
}

long Connection::receive(char* into, std::size_t size) {
  for (;;) {
    const ssize_t n = ::recv(fd_.get(), into, size, 0);
    if (n >= 0) return n;
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return -1;
    error_ = std::strerror(errno);
    return -2;
  }
}

}  // namespace warmgate::target
