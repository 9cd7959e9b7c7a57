// The one file that includes Boost.Beast (15 s of compile time): its parser reads what came, the
// waiting is done by Connection.
#include "harness/target/server/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <cctype>
#include <memory>

#include "harness/target/server/socket.h"
#include "harness/trace/wire.h"

namespace warmgate::target {
namespace {

namespace http = boost::beast::http;
using boost::beast::string_view;
using boost::system::error_code;

constexpr int kMaxInterim = 8;  // 1xx answers before the real one

std::int64_t ns(double seconds) { return static_cast<std::int64_t>(seconds * 1e9); }

// What the parser finds goes into the answer as it comes.
class Parser final : public http::basic_parser<false> {
 public:
  Parser(HttpAnswer& answer, const HttpLimits& limits, const OnBody& on_body)
      : answer_(answer), limits_(limits), on_body_(on_body) {
    header_limit(static_cast<std::uint32_t>(std::min<std::size_t>(limits.head_bytes, 1u << 30)));
    body_limit(limits.body_bytes);
    eager(true);
  }
  std::int64_t read_ns = 0;  // when the bytes came that are being parsed
  bool stopped = false;

 private:
  void on_request_impl(http::verb, string_view, string_view, int, error_code&) override {}
  void on_response_impl(int code, string_view, int, error_code&) override { answer_.status = code; }
  void on_field_impl(http::field, string_view name, string_view value, error_code&) override {
    std::string lower(name.data(), name.size());
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    answer_.headers[lower].assign(value.data(), value.size());
  }
  void on_header_impl(error_code&) override {}
  void on_body_init_impl(boost::optional<std::uint64_t> const&, error_code&) override {}
  std::size_t on_body_impl(string_view bytes, error_code& ec) override {
    give(bytes, ec);
    return bytes.size();
  }
  void on_chunk_header_impl(std::uint64_t, string_view, error_code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, string_view bytes, error_code& ec) override {
    give(bytes, ec);
    return bytes.size();
  }
  void on_finish_impl(error_code&) override {}

  void give(string_view bytes, error_code& ec) {
    answer_.body_bytes += bytes.size();
    const std::size_t room = limits_.keep_bytes - std::min(limits_.keep_bytes, answer_.body.size());
    answer_.body.append(bytes.data(), std::min(room, bytes.size()));
    if (on_body_ && !on_body_({bytes.data(), bytes.size()}, read_ns)) {
      stopped = true;
      ec = http::error::end_of_stream;  // any error ends the parse; `stopped` says which
    }
  }

  HttpAnswer& answer_;
  const HttpLimits& limits_;
  const OnBody& on_body_;
};

bool legal(std::string_view text) {
  return std::none_of(text.begin(), text.end(),
                      [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

bool names(std::string_view header, std::string_view name) {
  return std::equal(header.begin(), header.end(), name.begin(), name.end(),
                    [](unsigned char a, unsigned char b) { return std::tolower(a) == b; });
}

// "" if the caller's own words would break the request apart.
std::string serialize(const HttpRequest& r) {
  if (!legal(r.path) || !legal(r.method) || !legal(r.host) ||
      r.path.find(' ') != std::string::npos || r.path.empty() || r.path[0] != '/') {
    return "";
  }
  const bool six = r.host.find(':') != std::string::npos;
  std::string out =
      fmt::format("{} {} HTTP/1.1\r\nHost: {}{}{}:{}\r\nConnection: close\r\nAccept: */*\r\n",
                  r.method, r.path, six ? "[" : "", r.host, six ? "]" : "", r.port);
  bool type = false, agent = false;
  for (const auto& [name, value] : r.headers) {
    if (!legal(name) || !legal(value) || name.empty()) return "";
    type = type || names(name, "content-type");
    agent = agent || names(name, "user-agent");
    out += fmt::format("{}: {}\r\n", name, value);
  }
  if (!agent) out += "User-Agent: warmgate/" WARMGATE_VERSION "\r\n";
  if (!r.body.empty() || r.method == "POST") {
    if (!type) out += "Content-Type: application/json\r\n";
    out += fmt::format("Content-Length: {}\r\n", r.body.size());
  }
  return out + "\r\n" + r.body;
}

class Call {
 public:
  Call(const HttpRequest& request, const HttpLimits& limits, const CancelToken* cancel,
       const OnBody& on_body)
      : request_(request), limits_(limits), connection_(cancel), on_body_(on_body) {}

  HttpAnswer run() {
    answer_.start_ns = trace::now_ns();
    until_ = answer_.start_ns + ns(limits_.total_s);
    perform();
    answer_.end_ns = trace::now_ns();
    return std::move(answer_);
  }

 private:
  void end(HttpEnd how, std::string error = "") {
    answer_.end = how;
    answer_.error = std::move(error);
  }

  void perform() {
    const std::string text = serialize(request_);
    if (text.empty()) return end(HttpEnd::kMalformed, "the request itself is not legal HTTP");
    const std::int64_t connect_until = std::min(until_, answer_.start_ns + ns(limits_.connect_s));
    const HttpEnd connected = connection_.connect(request_.host, request_.port, connect_until);
    if (connected != HttpEnd::kAnswered) return end(connected, connection_.error());
    answer_.connected_ns = trace::now_ns();
    if (!send(text)) return;
    answer_.sent_ns = trace::now_ns();
    read_until_ = std::min(until_, answer_.sent_ns + ns(limits_.first_byte_s));
    parser_ = std::make_unique<Parser>(answer_, limits_, on_body_);
    while (read()) {
    }
  }

  bool send(std::string_view rest) {
    while (!rest.empty()) {
      const long n = connection_.send(rest);
      // The server may have answered before it had read everything (413), and closed.
      if (n < 0) return true;
      rest.remove_prefix(static_cast<std::size_t>(n));
      if (rest.empty()) break;
      const Waited waited = connection_.wait(true, until_);
      if (waited == Waited::kReady) continue;
      end(waited == Waited::kCancelled ? HttpEnd::kCancelled : HttpEnd::kTooSlow,
          "the server did not read the request");
      return false;
    }
    return true;
  }

  // One read and what follows from it. False at the end of the call.
  bool read() {
    char bytes[16 * 1024];
    const long n = connection_.receive(bytes, sizeof bytes);
    if (n == -1) return wait();
    if (n == -2) {
      end(HttpEnd::kClosed, "the connection broke: " + connection_.error());
      return false;
    }
    const std::int64_t now = trace::now_ns();
    if (n == 0) return closed();
    if (answer_.first_byte_ns == 0) answer_.first_byte_ns = now;
    answer_.read_bytes += static_cast<std::uint64_t>(n);
    pending_.append(bytes, static_cast<std::size_t>(n));
    if (!parse(now)) return false;
    if (answer_.read_bytes > 2 * limits_.body_bytes + limits_.head_bytes) {
      end(HttpEnd::kTooLarge, "more bytes than a body of the allowed length can need");
      return false;
    }
    // A server that always has a byte ready would never reach wait().
    if (now >= until_) {
      end(HttpEnd::kTooSlow, fmt::format("not over after {:g} s", limits_.total_s));
      return false;
    }
    if (head_done_) read_until_ = std::min(until_, now + ns(limits_.idle_s));
    return true;
  }

  bool wait() {
    switch (connection_.wait(false, read_until_)) {
      case Waited::kReady:
        return true;
      case Waited::kCancelled:
        end(HttpEnd::kCancelled, "cancelled");
        return false;
      case Waited::kDeadline:
        break;
    }
    if (trace::now_ns() >= until_) {
      end(answer_.first_byte_ns == 0 ? HttpEnd::kNoAnswer : HttpEnd::kTooSlow,
          fmt::format("not over after {:g} s", limits_.total_s));
    } else if (!head_done_) {
      end(HttpEnd::kNoAnswer,
          fmt::format("no head of an answer within {:g} s", limits_.first_byte_s));
    } else {
      end(HttpEnd::kStalled, fmt::format("no byte for {:g} s", limits_.idle_s));
    }
    return false;
  }

  bool closed() {
    error_code ec;
    if (answer_.first_byte_ns != 0 && pending_.empty()) parser_->put_eof(ec);
    if (answer_.first_byte_ns != 0 && !ec && parser_->is_done() && pending_.empty()) {
      end(HttpEnd::kAnswered);
    } else if (answer_.first_byte_ns == 0) {
      end(HttpEnd::kClosed, "closed without an answer");
    } else {
      end(HttpEnd::kClosed,
          fmt::format("closed in the middle of the {}", head_done_ ? "body" : "head"));
    }
    return false;
  }

  // False if the call is over.
  bool parse(std::int64_t now) {
    constexpr std::string_view kBegin = "HTTP/";
    if (!begun_ && !std::string_view(pending_).starts_with(
                       kBegin.substr(0, std::min(pending_.size(), kBegin.size())))) {
      // The parser would wait for a head that cannot come.
      end(HttpEnd::kMalformed, "the answer is not HTTP");
      return false;
    }
    std::size_t used = 0;
    bool more = true;
    while (more && used < pending_.size()) {
      error_code ec;
      parser_->read_ns = now;
      const std::size_t n =
          parser_->put(boost::asio::buffer(pending_.data() + used, pending_.size() - used), ec);
      used += n;
      begun_ = begun_ || n > 0;
      if (parser_->is_header_done()) head_done_ = true;
      if (ec == http::error::need_more) {
        ec = {};
        more = false;
      }
      if (parser_->stopped) {
        end(HttpEnd::kStopped);
        return false;
      }
      if (ec) return failed(ec);
      if (!parser_->is_done()) continue;
      if (answer_.status >= 100 && answer_.status < 200 && interim_ < kMaxInterim) {
        ++interim_;
        head_done_ = begun_ = false;
        answer_.headers.clear();
        parser_ = std::make_unique<Parser>(answer_, limits_, on_body_);
        more = true;
        continue;
      }
      answer_.left_over = used < pending_.size();
      end(HttpEnd::kAnswered);
      return false;
    }
    pending_.erase(0, used);
    if (pending_.size() > limits_.head_bytes) {
      end(HttpEnd::kTooLarge,
          fmt::format("a {} of more than {} bytes", head_done_ ? "chunk's head" : "head",
                      limits_.head_bytes));
      return false;
    }
    return true;
  }

  bool failed(const error_code& ec) {
    const bool large = ec == http::error::header_limit || ec == http::error::body_limit ||
                       ec == http::error::buffer_overflow;
    end(large ? HttpEnd::kTooLarge : HttpEnd::kMalformed, ec.message());
    return false;
  }

  const HttpRequest& request_;
  const HttpLimits& limits_;
  Connection connection_;
  const OnBody& on_body_;
  HttpAnswer answer_;
  std::unique_ptr<Parser> parser_;
  std::string pending_;  // read and not yet parsed
  std::int64_t until_ = 0, read_until_ = 0;
  bool begun_ = false;  // the parser took something of this head
  bool head_done_ = false;
  int interim_ = 0;
};

}  // namespace

std::string_view http_end_name(HttpEnd end) {
  switch (end) {
    case HttpEnd::kAnswered:
      return "answered";
    case HttpEnd::kRefused:
      return "refused";
    case HttpEnd::kUnreachable:
      return "unreachable";
    case HttpEnd::kNoAnswer:
      return "no_answer";
    case HttpEnd::kStalled:
      return "stalled";
    case HttpEnd::kTooSlow:
      return "too_slow";
    case HttpEnd::kClosed:
      return "closed";
    case HttpEnd::kMalformed:
      return "malformed";
    case HttpEnd::kTooLarge:
      return "too_large";
    case HttpEnd::kCancelled:
      return "cancelled";
    case HttpEnd::kStopped:
      return "stopped";
  }
  return "unknown";
}

HttpAnswer http_call(const HttpRequest& request, const HttpLimits& limits,
                     const CancelToken* cancel, const OnBody& on_body) {
  return Call(request, limits, cancel, on_body).run();
}

HttpEnd try_connect(const std::string& host, int port, double deadline_s,
                    const CancelToken* cancel) {
  return Connection(cancel).connect(host, port, trace::now_ns() + ns(deadline_s));
}

}  // namespace warmgate::target
