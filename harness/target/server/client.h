// HTTP/1.1 as a harness needs it: blocking, cancellable, every wait bounded, nothing reused. The
// server is the thing under test, so whatever it sends is data and may be hostile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/target/target.h"

namespace warmgate::target {

struct HttpLimits {
  double connect_s = 2;      // name, connection
  double first_byte_s = 30;  // request sent → the head of the answer is there
  double idle_s = 30;        // between two reads of the body
  double total_s = 60;       // all of it
  std::size_t head_bytes = 64 * 1024;
  std::size_t keep_bytes = 1 << 20;        // of the body in HttpAnswer::body; the rest is counted
  std::uint64_t body_bytes = 64ull << 20;  // more ends the call as kTooLarge
};

struct HttpRequest {
  std::string host = "127.0.0.1";  // an address, or a name; proxies of the environment are not used
  int port = 0;
  std::string method = "GET";
  std::string path = "/";  // with the query
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;  // sent as application/json where headers do not say otherwise
};

/// How a call ended. Only kAnswered means that a whole answer came, whatever its status.
enum class HttpEnd {
  kAnswered,
  kRefused,      // nobody listens
  kUnreachable,  // no such name, no route, no connection in time
  kNoAnswer,     // connected, and no head of an answer within first_byte_s
  kStalled,      // no byte for idle_s
  kTooSlow,      // total_s is over
  kClosed,       // closed before the answer was whole
  kMalformed,    // not HTTP
  kTooLarge,     // head, body or a chunk beyond the limits
  kCancelled,
  kStopped,  // the caller's OnBody had enough
};
std::string_view http_end_name(HttpEnd end);  // "answered", "refused" …

struct HttpAnswer {
  HttpEnd end = HttpEnd::kUnreachable;
  std::string error;  // one line for a person; "" if answered
  int status = 0;     // 0 if no head came. Redirects are not followed: 3xx is a status like another
  std::map<std::string, std::string> headers;  // names in lower case; of equal ones the last
  std::string body;                            // the first keep_bytes
  std::uint64_t body_bytes = 0;
  std::uint64_t read_bytes = 0;  // of head and body, as they came
  bool left_over = false;        // bytes followed the end of the answer (a wrong Content-Length)
  // Monotonic; 0 where it never came to that.
  std::int64_t start_ns = 0, connected_ns = 0, sent_ns = 0, first_byte_ns = 0, end_ns = 0;

  bool answered() const { return end == HttpEnd::kAnswered; }
  bool ok() const { return answered() && status >= 200 && status < 300; }
  double total_ms() const { return static_cast<double>(end_ns - start_ns) / 1e6; }
};

/// Pieces of the body as they come, transfer coding removed. False ends the call (kStopped).
using OnBody = std::function<bool(std::string_view bytes, std::int64_t t_ns)>;

/// Never throws for what the network or the server does. `cancel` may be null.
HttpAnswer http_call(const HttpRequest& request, const HttpLimits& limits,
                     const CancelToken* cancel = nullptr, const OnBody& on_body = {});

/// Does anybody accept connections there? One connect, closed at once: the clock `port`. True,
/// kRefused …
HttpEnd try_connect(const std::string& host, int port, double deadline_s,
                    const CancelToken* cancel = nullptr);

}  // namespace warmgate::target
