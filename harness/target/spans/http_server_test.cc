// The server as any client may use it, and as none should.
#include "harness/target/spans/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "harness/target/server/client.h"
#include "harness/target/server/port.h"
#include "harness/target/server/socket.h"
#include "harness/trace/wire.h"

namespace warmgate::target {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class Loopback : public ::testing::Test {
 protected:
  void start(ServerLimits limits = {}) {
    lease_ = PortLease::free_port("127.0.0.1");
    server_ = std::make_unique<LoopbackServer>(
        lease_.port(),
        [this](const ServedRequest& request) {
          const std::lock_guard lock(mutex_);
          heard_.push_back(request);
          return ServedReply{200, "text/plain", "got " + std::to_string(request.body.size())};
        },
        limits);
  }
  std::vector<ServedRequest> heard() {
    const std::lock_guard lock(mutex_);
    return heard_;
  }
  HttpAnswer post(const std::string& body) {
    HttpRequest request;
    request.method = "POST";
    request.host = "127.0.0.1";
    request.port = lease_.port();
    request.path = "/v1/traces";
    request.body = body;
    request.headers = {{"Content-Type", "application/x-protobuf"}, {"Content-Encoding", "gzip"}};
    HttpLimits limits;
    limits.total_s = 5;
    return http_call(request, limits);
  }
  // What comes back for these bytes until the server closes, or `enough` was seen.
  std::string raw(const std::string& bytes, const std::string& enough = "") {
    Connection connection(nullptr);
    const std::int64_t until = trace::now_ns() + 3'000'000'000;
    if (connection.connect("127.0.0.1", lease_.port(), until) != HttpEnd::kAnswered) return "none";
    std::string_view rest = bytes;
    std::string out;
    while (trace::now_ns() < until) {
      if (!rest.empty()) {
        const long sent = connection.send(rest);
        if (sent > 0) rest.remove_prefix(static_cast<std::size_t>(sent));
        if (sent < 0) rest = {};
      }
      char piece[4096];
      const long got = connection.receive(piece, sizeof piece);
      if (got == 0 || got == -2) break;
      if (got > 0) out.append(piece, static_cast<std::size_t>(got));
      if (!enough.empty() && out.find(enough) != std::string::npos) break;
      if (got == -1) connection.wait(!rest.empty(), trace::now_ns() + 20'000'000);
    }
    return out;
  }

  PortLease lease_;
  std::mutex mutex_;
  std::vector<ServedRequest> heard_;
  std::unique_ptr<LoopbackServer> server_;
};

TEST_F(Loopback, ARequestArrivesWhole) {
  start();
  const HttpAnswer answer = post(std::string(300'000, 'x'));
  EXPECT_EQ(answer.status, 200) << answer.error;
  EXPECT_EQ(answer.body, "got 300000");
  ASSERT_EQ(heard().size(), 1u);
  EXPECT_EQ(heard()[0].method, "POST");
  EXPECT_EQ(heard()[0].target, "/v1/traces");
  EXPECT_EQ(heard()[0].content_type, "application/x-protobuf");
  EXPECT_EQ(heard()[0].content_encoding, "gzip");
}

TEST_F(Loopback, ConnectionsAreKeptAndChunksPutTogether) {
  start();
  const std::string two =
      "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi"
      "POST /b HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: "
      "chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
  EXPECT_THAT(raw(two, "got 5"), AllOf(HasSubstr("got 2"), HasSubstr("got 5")));
  ASSERT_EQ(heard().size(), 2u);
  EXPECT_EQ(heard()[1].body, "abcde");
  const std::string waits =
      "POST /c HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n";
  EXPECT_THAT(raw(waits, "100 Continue"), StartsWith("HTTP/1.1 100"));
}

TEST_F(Loopback, WhatIsTooLargeOrNoHttpIsRefused) {
  ServerLimits limits;
  limits.body_bytes = 1000;
  limits.head_bytes = 2000;
  start(limits);
  EXPECT_EQ(post(std::string(1001, 'x')).status, 413);
  EXPECT_EQ(post(std::string(1000, 'x')).status, 200);
  EXPECT_EQ(post(std::string(900'000, 'x')).status, 413);
  EXPECT_THAT(raw("POST /a HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n"),
              StartsWith("HTTP/1.1 4"));
  EXPECT_THAT(
      raw("POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n7d0\r\n" + std::string(2000, 'x')),
      StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(raw("GET / HTTP/1.1\r\nX: " + std::string(5000, 'y') + "\r\n\r\n"),
              StartsWith("HTTP/1.1 431"));
  EXPECT_THAT(raw("\x16\x03\x01\x02 this is TLS\r\n\r\n"), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(raw(std::string(3000, '\0')), StartsWith("HTTP/1.1 4"));
  EXPECT_EQ(post("well").status, 200) << "it goes on";
}

TEST_F(Loopback, HalfRequestsAndManyConnectionsKeepNobodyOut) {
  ServerLimits limits;
  limits.connections = 8;
  limits.request_s = 0.3;
  start(limits);
  std::vector<std::unique_ptr<Connection>> crowd;
  for (int i = 0; i < 30; ++i) {
    crowd.push_back(std::make_unique<Connection>(nullptr));
    const auto until = trace::now_ns() + 2'000'000'000;
    ASSERT_EQ(crowd.back()->connect("127.0.0.1", lease_.port(), until), HttpEnd::kAnswered);
    crowd.back()->send("POST /half HTTP/1.1\r\nContent-Length: 5\r\n\r\nab");
  }
  EXPECT_EQ(post("in spite of them").status, 200);
  // And who never ends a request is closed.
  char byte = 0;
  const auto until = trace::now_ns() + 3'000'000'000;
  EXPECT_EQ(crowd.back()->wait(false, until), Waited::kReady);
  EXPECT_LE(crowd.back()->receive(&byte, 1), 0);
}

TEST_F(Loopback, WhatHasArrivedIsAnsweredWhenItStopsAndThePortIsFree) {
  start();
  Connection connection(nullptr);
  const auto until = trace::now_ns() + 2'000'000'000;
  ASSERT_EQ(connection.connect("127.0.0.1", lease_.port(), until), HttpEnd::kAnswered);
  connection.send("POST /last HTTP/1.1\r\nContent-Length: 2\r\n\r\nhi");
  server_->stop();
  ASSERT_EQ(heard().size(), 1u);
  EXPECT_EQ(heard()[0].body, "hi");
  EXPECT_EQ(who_listens("127.0.0.1", lease_.port()), std::nullopt);
  server_->stop();
  server_.reset();
}

TEST_F(Loopback, APortThatIsTakenIsAnError) {
  start();
  EXPECT_THROW(LoopbackServer(lease_.port(), [](const ServedRequest&) { return ServedReply{}; }),
               std::system_error);
}

}  // namespace
}  // namespace warmgate::target
