// A TCP server for tests that says exactly what a script tells it to, HTTP or not.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace warmgate::target::testing {

/// One accepted connection. All calls end soon once the server is being destroyed.
class Peer {
 public:
  Peer(int fd, int quit) : fd_(fd), quit_(quit) {}
  /// False if the client is gone or the test is over.
  bool say(std::string_view text) {
    while (!text.empty()) {
      pollfd fds[2] = {{fd_, POLLOUT, 0}, {quit_, POLLIN, 0}};
      if (::poll(fds, 2, 5000) <= 0 || fds[1].revents != 0) return false;
      const ssize_t n = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n < 0 && errno == EAGAIN) continue;
      if (n <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }
  bool say_chunk(std::string_view text) {
    char head[32];
    std::snprintf(head, sizeof head, "%zx\r\n", text.size());
    return say(std::string(head) + std::string(text) + "\r\n");
  }
  /// False if the test ended first.
  bool pause(int ms) {
    pollfd fd{quit_, POLLIN, 0};
    return ::poll(&fd, 1, ms) == 0;
  }
  /// Head and body (Content-Length) of the request; what came until the client went away else.
  std::string hear() {
    std::string text;
    for (;;) {
      const auto end = text.find("\r\n\r\n");
      if (end != std::string::npos) {
        const auto at = text.find("Content-Length: ");
        const std::size_t body = at != std::string::npos && at < end
                                     ? std::strtoul(text.c_str() + at + 16, nullptr, 10)
                                     : 0;
        if (text.size() >= end + 4 + body) return text;
      }
      pollfd fds[2] = {{fd_, POLLIN, 0}, {quit_, POLLIN, 0}};
      if (::poll(fds, 2, 5000) <= 0 || fds[1].revents != 0) return text;
      char bytes[4096];
      const ssize_t n = ::recv(fd_, bytes, sizeof bytes, 0);
      if (n <= 0) return text;
      text.append(bytes, static_cast<std::size_t>(n));
    }
  }
  /// The connection ends with a reset instead of a proper end.
  void reset() {
    const linger now{1, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  }

 private:
  int fd_, quit_;
};

class TestServer {
 public:
  /// `script` runs in a thread for each connection, `number` counts them from 0.
  using Script = std::function<void(Peer& peer, const std::string& request, int number)>;
  explicit TestServer(Script script) : script_(std::move(script)) {
    quit_ = ::eventfd(0, EFD_CLOEXEC);
    listen_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (::bind(listen_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        ::listen(listen_, 64) != 0 ||
        ::getsockname(listen_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      std::abort();
    }
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~TestServer() {
    const std::uint64_t one = 1;
    if (::write(quit_, &one, sizeof one) < 0) std::abort();
    thread_.join();
    for (std::thread& each : peers_) each.join();
    ::close(listen_);
    ::close(quit_);
  }
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;

  int port() const { return port_; }
  int connections() const { return count_; }
  /// Requests as they came, whole.
  std::vector<std::string> heard() {
    const std::lock_guard lock(mutex_);
    return heard_;
  }

 private:
  void serve() {
    for (;;) {
      pollfd fds[2] = {{listen_, POLLIN, 0}, {quit_, POLLIN, 0}};
      if (::poll(fds, 2, -1) < 0) continue;
      if (fds[1].revents != 0) return;
      const int fd = ::accept4(listen_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) continue;
      peers_.emplace_back([this, fd, number = count_++] {
        Peer peer(fd, quit_);
        const std::string request = peer.hear();
        {
          const std::lock_guard lock(mutex_);
          heard_.push_back(request);
        }
        script_(peer, request, number);
        ::close(fd);
      });
    }
  }

  Script script_;
  int quit_ = -1, listen_ = -1, port_ = 0;
  std::atomic<int> count_{0};
  std::mutex mutex_;
  std::vector<std::string> heard_;
  std::vector<std::thread> peers_;
  std::thread thread_;
};

/// A whole answer with a Content-Length.
inline std::string answer(const std::string& body, const std::string& status = "200 OK",
                          const std::string& headers = "") {
  return "HTTP/1.1 " + status + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" +
         headers + "\r\n" + body;
}

/// The body of a request as TestServer::heard() keeps it.
inline std::string body_of(const std::string& request) {
  const auto end = request.find("\r\n\r\n");
  return end == std::string::npos ? "" : request.substr(end + 4);
}

}  // namespace warmgate::target::testing
