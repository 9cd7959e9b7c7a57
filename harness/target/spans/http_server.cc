// The other file that includes Boost.Beast's parser, here for requests; sockets are polled.
#include "harness/target/spans/http_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <cerrno>
#include <memory>
#include <system_error>
#include <vector>

#include "harness/trace/wire.h"

namespace warmgate::target {
namespace {

namespace http = boost::beast::http;
using boost::beast::string_view;
using boost::system::error_code;

constexpr std::int64_t kLast_ns = 200'000'000;    // for what has arrived when it is stopped
constexpr std::int64_t kLinger_ns = 500'000'000;  // for a client to read the answer to its excess
constexpr std::size_t kMostUnsent = 1 << 20;      // answers to one who never reads them

class RequestParser final : public http::basic_parser<true> {
 public:
  RequestParser(ServedRequest& request, const ServerLimits& limits) : request_(request) {
    header_limit(static_cast<std::uint32_t>(limits.head_bytes));
    body_limit(limits.body_bytes);
    eager(true);
  }
  bool expects_continue = false;

 private:
  void on_request_impl(http::verb, string_view method, string_view target, int,
                       error_code&) override {
    request_.method.assign(method.data(), method.size());
    request_.target.assign(target.data(), target.size());
  }
  void on_response_impl(int, string_view, int, error_code&) override {}
  void on_field_impl(http::field field, string_view, string_view value, error_code&) override {
    const std::string text(value.data(), value.size());
    if (field == http::field::content_type) request_.content_type = text;
    if (field == http::field::content_encoding) request_.content_encoding = text;
    if (field == http::field::expect)
      expects_continue = boost::beast::iequals(value, "100-continue");
  }
  void on_header_impl(error_code&) override {}
  void on_body_init_impl(boost::optional<std::uint64_t> const&, error_code&) override {}
  std::size_t on_body_impl(string_view bytes, error_code&) override {
    request_.body.append(bytes.data(), bytes.size());
    return bytes.size();
  }
  void on_chunk_header_impl(std::uint64_t, string_view, error_code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, string_view bytes, error_code&) override {
    request_.body.append(bytes.data(), bytes.size());
    return bytes.size();
  }
  void on_finish_impl(error_code&) override {}
  ServedRequest& request_;
};

const char* reason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 431:
      return "Request Header Fields Too Large";
    default:
      return "Answer";
  }
}

// One client: its bytes in, answers out.
class Client {
 public:
  Client(Fd fd, const ServerLimits& limits, std::int64_t now)
      : limits_(limits), fd_(std::move(fd)), heard_ns_(now) {
    begin();
  }
  int fd() const { return fd_.get(); }
  bool wants_to_write() const { return !out_.empty(); }
  bool over() const { return over_; }
  std::int64_t heard_ns() const { return heard_ns_; }
  bool within_request() const { return begun_ns_ != 0; }

  void read(std::int64_t now, const LoopbackServer::Handler& handler) {
    char bytes[64 * 1024];
    const ssize_t n = ::recv(fd_.get(), bytes, sizeof bytes, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) {
      over_ = true;
      return;
    }
    heard_ns_ = now;
    if (closing_) return;  // what is too much is read and thrown away
    if (begun_ns_ == 0) begun_ns_ = now;
    pending_.append(bytes, static_cast<std::size_t>(n));
    while (!closing_ && !pending_.empty() && parse(handler)) {
    }
    write();
  }

  void write() {
    while (!out_.empty()) {
      const ssize_t n = ::send(fd_.get(), out_.data(), out_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) break;
      if (n <= 0) {
        over_ = true;
        return;
      }
      out_.erase(0, static_cast<std::size_t>(n));
    }
    if (out_.size() > kMostUnsent) over_ = true;
    if (closing_ && out_.empty() && !shut_) {
      shut_ = true;
      ::shutdown(fd_.get(), SHUT_WR);
    }
  }

  void tick(std::int64_t now) {
    if (closing_ && now - closing_ns_ > kLinger_ns) over_ = true;
    if (begun_ns_ != 0 && now - begun_ns_ > static_cast<std::int64_t>(limits_.request_s * 1e9)) {
      over_ = true;
    }
  }

 private:
  void begin() {
    request_ = {};
    parser_ = std::make_unique<RequestParser>(request_, limits_);
    begun_ns_ = 0;
    told_to_go_on_ = false;
  }

  // One step of the parser; false where more bytes are needed.
  bool parse(const LoopbackServer::Handler& handler) {
    error_code ec;
    const std::size_t used =
        parser_->put(boost::asio::buffer(pending_.data(), pending_.size()), ec);
    pending_.erase(0, used);
    if (ec && ec != http::error::need_more) {
      refuse(ec);
      return false;
    }
    if (parser_->is_header_done() && parser_->expects_continue && !told_to_go_on_) {
      told_to_go_on_ = true;
      out_ += "HTTP/1.1 100 Continue\r\n\r\n";
    }
    if (parser_->is_done()) {
      answer(handler(request_), parser_->keep_alive());
      const std::int64_t rest_since = trace::now_ns();
      begin();
      if (!pending_.empty()) begun_ns_ = rest_since;
      return true;
    }
    if (!ec && used > 0) return true;
    if (pending_.size() > limits_.head_bytes) refuse(http::error::header_limit);
    return false;
  }

  void refuse(const error_code& ec) {
    const int status = ec == http::error::body_limit || ec == http::error::buffer_overflow ? 413
                       : ec == http::error::header_limit                                   ? 431
                                                                                           : 400;
    answer({status, "text/plain", ec.message() + "\n"}, false);
  }

  void answer(const ServedReply& reply, bool keep) {
    out_ += fmt::format("HTTP/1.1 {} {}\r\nContent-Length: {}\r\n", reply.status,
                        reason(reply.status), reply.body.size());
    if (!reply.content_type.empty()) out_ += "Content-Type: " + reply.content_type + "\r\n";
    if (reply.status == 405) out_ += "Allow: POST\r\n";
    if (!keep) out_ += "Connection: close\r\n";
    out_ += "\r\n" + reply.body;
    if (keep) return;
    closing_ = true;
    closing_ns_ = trace::now_ns();
    begun_ns_ = 0;
  }

  const ServerLimits& limits_;
  Fd fd_;
  ServedRequest request_;
  std::unique_ptr<RequestParser> parser_;
  std::string pending_, out_;
  std::int64_t heard_ns_ = 0, begun_ns_ = 0, closing_ns_ = 0;
  bool told_to_go_on_ = false, closing_ = false, shut_ = false, over_ = false;
};

}  // namespace

LoopbackServer::LoopbackServer(int port, Handler handler, ServerLimits limits)
    : handler_(std::move(handler)),
      limits_(limits),
      listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)),
      quit_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  const int on = 1;
  ::setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  if (!quit_.valid() || !listener_.valid() ||
      ::bind(listener_.get(), generic, sizeof address) != 0 || ::listen(listener_.get(), 64) != 0) {
    throw std::system_error(errno, std::generic_category(),
                            fmt::format("listening on 127.0.0.1:{}", port));
  }
  thread_ = std::thread([this] { run(); });
}

LoopbackServer::~LoopbackServer() { stop(); }

void LoopbackServer::stop() {
  if (!thread_.joinable()) return;
  const std::uint64_t one = 1;
  if (::write(quit_.get(), &one, sizeof one) < 0) return;  // cannot be: an eventfd that is at 0
  thread_.join();
  listener_.reset();
}

void LoopbackServer::run() {
  std::vector<std::unique_ptr<Client>> clients;
  std::int64_t last = 0;  // when it ends, once it is stopped
  for (;;) {
    std::vector<pollfd> watched = {{last == 0 ? quit_.get() : -1, POLLIN, 0},
                                   {listener_.get(), POLLIN, 0}};
    for (const auto& client : clients) {
      const short events = client->wants_to_write() ? POLLIN | POLLOUT : POLLIN;
      watched.push_back({client->fd(), events, 0});
    }
    const int ready = ::poll(watched.data(), watched.size(), last != 0 ? 0 : 250);
    const std::int64_t now = trace::now_ns();
    if (last != 0 && (ready <= 0 || now > last)) return;
    if (watched[0].revents != 0) last = now + kLast_ns;
    for (std::size_t i = 0; i < clients.size(); ++i) {
      const short got = watched[i + 2].revents;
      if ((got & POLLOUT) != 0) clients[i]->write();
      if ((got & ~POLLOUT) != 0) clients[i]->read(now, handler_);
      clients[i]->tick(now);
    }
    std::erase_if(clients, [](const auto& client) { return client->over(); });
    if (watched[1].revents == 0) continue;
    Fd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.valid()) continue;
    if (clients.size() >= limits_.connections) {
      // Kept-alive ones first, then who has been silent longest.
      const auto oldest =
          std::min_element(clients.begin(), clients.end(), [](const auto& a, const auto& b) {
            return std::pair(a->within_request(), a->heard_ns()) <
                   std::pair(b->within_request(), b->heard_ns());
          });
      clients.erase(oldest);
    }
    clients.push_back(std::make_unique<Client>(std::move(fd), limits_, now));
  }
}

}  // namespace warmgate::target
