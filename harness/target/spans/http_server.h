// An HTTP/1.1 server on 127.0.0.1 for what programs under test send by themselves. One thread, a
// bounded number of connections, bounded heads and bodies; whatever comes, it is answered or
// closed.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>
#include <thread>

#include "harness/target/fd.h"

namespace warmgate::target {

/// A whole request. Names of fields do not matter here but for these.
struct ServedRequest {
  std::string method, target;  // target as it was sent
  std::string content_type, content_encoding;
  std::string body;
};

struct ServedReply {
  int status = 200;
  std::string content_type, body;
};

struct ServerLimits {
  std::size_t head_bytes = 16 * 1024;
  std::size_t body_bytes = 4 << 20;  // as sent; more is 413
  std::size_t connections = 64;      // the one that was quiet longest makes room for another
  double request_s = 10;             // from the first byte of a request to its last
};

class LoopbackServer {
 public:
  /// On the server's own thread, one at a time; must not throw.
  using Handler = std::function<ServedReply(const ServedRequest&)>;

  /// Listens on 127.0.0.1:`port` at once. Throws std::system_error where it cannot.
  LoopbackServer(int port, Handler handler, ServerLimits limits = {});
  ~LoopbackServer();
  LoopbackServer(const LoopbackServer&) = delete;
  LoopbackServer& operator=(const LoopbackServer&) = delete;

  /// Answers what has arrived (for at most 200 ms), then closes everything. Called once or not.
  void stop();

 private:
  void run();
  Handler handler_;
  const ServerLimits limits_;
  Fd listener_, quit_;
  std::thread thread_;
};

}  // namespace warmgate::target
