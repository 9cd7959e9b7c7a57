// A TCP connection that waits with a deadline and can be cancelled. No thread, no event loop: a
// client of a server under test has one thing to wait for at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "harness/target/fd.h"
#include "harness/target/server/client.h"
#include "harness/target/target.h"

namespace warmgate::target {

/// What a wait came to.
enum class Waited { kReady, kDeadline, kCancelled };

class Connection {
 public:
  /// `cancel` may be null, else it outlives the connection.
  explicit Connection(const CancelToken* cancel) : cancel_(cancel) {}

  /// kAnswered if it is connected, else kRefused, kUnreachable or kCancelled with error() set.
  HttpEnd connect(const std::string& host, int port, std::int64_t until_ns);
  /// Sends what fits into the socket. Bytes sent, 0 if it would block, -1 if the peer is gone.
  long send(std::string_view bytes);
  /// Bytes read, 0 at the end, -1 if it would block, -2 if the connection was broken.
  long receive(char* into, std::size_t size);
  /// Until the socket can be read (or written), the deadline is over, or somebody cancels.
  Waited wait(bool to_write, std::int64_t until_ns);
  const std::string& error() const { return error_; }

 private:
  HttpEnd connect_to(const void* address, unsigned size, int family, std::int64_t until_ns);
  const CancelToken* cancel_;
  Fd fd_;
  std::string error_;
};

}  // namespace warmgate::target
