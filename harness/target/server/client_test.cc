#include "harness/target/server/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "harness/target/server/test_server.h"
#include "harness/target/test_support.h"

namespace warmgate::target {
namespace {

using testing::answer;
using ::testing::HasSubstr;
using testing::Peer;
using testing::TestServer;

HttpRequest get(int port, const std::string& path = "/") {
  HttpRequest request;
  request.port = port;
  request.path = path;
  return request;
}

HttpLimits quick() {
  HttpLimits limits;
  limits.first_byte_s = 0.2;
  limits.idle_s = 0.2;
  limits.total_s = 5;
  return limits;
}

HttpAnswer ask(const std::string& said, const HttpLimits& limits = quick()) {
  TestServer server([&](Peer& peer, const std::string&, int) { peer.say(said); });
  return http_call(get(server.port()), limits);
}

TEST(HttpClient, AnAnswerWithALength) {
  const HttpAnswer a = ask(answer("hello", "200 OK", "X-Thing: One\r\nx-thing: two\r\n"));
  EXPECT_TRUE(a.ok()) << a.error;
  EXPECT_EQ(a.body, "hello");
  EXPECT_EQ(a.body_bytes, 5u);
  EXPECT_EQ(a.headers.at("x-thing"), "two");
  EXPECT_FALSE(a.left_over);
  EXPECT_GT(a.start_ns, 0);
  EXPECT_LE(a.start_ns, a.connected_ns);
  EXPECT_LE(a.connected_ns, a.sent_ns);
  EXPECT_LE(a.sent_ns, a.first_byte_ns);
  EXPECT_LE(a.first_byte_ns, a.end_ns);
}

TEST(HttpClient, SaysWhatItAsksAndNeverKeepsTheConnection) {
  TestServer server([](Peer& peer, const std::string&, int) { peer.say(answer("")); });
  HttpRequest request = get(server.port(), "/v1/completions?x=1");
  request.method = "POST";
  request.body = R"({"a":1})";
  request.headers = {{"Authorization", "Bearer t"}};
  EXPECT_TRUE(http_call(request, quick()).ok());
  const std::string heard = server.heard().at(0);
  EXPECT_EQ(heard.rfind("POST /v1/completions?x=1 HTTP/1.1\r\n", 0), 0u) << heard;
  EXPECT_THAT(heard, HasSubstr("Host: 127.0.0.1:" + std::to_string(server.port()) + "\r\n"));
  EXPECT_THAT(heard, HasSubstr("Connection: close\r\n"));
  EXPECT_THAT(heard, HasSubstr("Content-Type: application/json\r\nContent-Length: 7\r\n"));
  EXPECT_THAT(heard, HasSubstr("Authorization: Bearer t\r\n"));
  EXPECT_EQ(testing::body_of(heard), R"({"a":1})");
}

TEST(HttpClient, NothingIsSentThatWouldBreakTheRequestApart) {
  TestServer server([](Peer& peer, const std::string&, int) { peer.say(answer("")); });
  for (const char* path : {"/a b", "/a\r\nX: 1", "", "a", "/\x01"}) {
    EXPECT_EQ(http_call(get(server.port(), path), quick()).end, HttpEnd::kMalformed) << path;
  }
  HttpRequest request = get(server.port());
  request.headers = {{"X", "1\r\nY: 2"}};
  EXPECT_EQ(http_call(request, quick()).end, HttpEnd::kMalformed);
  EXPECT_EQ(server.connections(), 0);
}

TEST(HttpClient, ChunksAndTheirPieces) {
  std::string pieces;
  TestServer server([](Peer& peer, const std::string&, int) {
    peer.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (const char* part : {"a", "bc", "def"}) {
      peer.say_chunk(part);
      peer.pause(5);
    }
    peer.say("0\r\n");
    peer.pause(5);
    peer.say("Trailer: 1\r\n\r\n");
  });
  std::int64_t last = 0;
  const HttpAnswer a =
      http_call(get(server.port()), quick(), nullptr, [&](std::string_view bytes, std::int64_t t) {
        pieces += std::string(bytes) + "|";
        EXPECT_GE(t, last);
        last = t;
        return true;
      });
  EXPECT_TRUE(a.ok()) << a.error;
  EXPECT_EQ(a.body, "abcdef");
  EXPECT_EQ(pieces, "a|bc|def|");
  EXPECT_LE(last, a.end_ns);
}

TEST(HttpClient, OneByteAtATimeIsTheSame) {
  const std::string said =
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;ext=\"x\"\r\nhello\r\n0\r\n\r\n";
  TestServer server([&](Peer& peer, const std::string&, int) {
    for (const char c : said) {
      peer.say(std::string(1, c));
      if (!peer.pause(1)) return;
    }
  });
  const HttpAnswer a = http_call(get(server.port()), quick());
  EXPECT_TRUE(a.ok()) << a.error;
  EXPECT_EQ(a.body, "hello");
}

TEST(HttpClient, WithoutALengthTheEndIsTheEnd) {
  const HttpAnswer a = ask("HTTP/1.0 200 OK\r\n\r\nall of it");
  EXPECT_TRUE(a.ok()) << a.error;
  EXPECT_EQ(a.body, "all of it");
}

TEST(HttpClient, InterimAnswersAreReadOver) {
  const HttpAnswer a = ask("HTTP/1.1 100 Continue\r\nA: 1\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n" +
                           answer("x", "503 Busy"));
  EXPECT_TRUE(a.answered()) << a.error;
  EXPECT_FALSE(a.ok());
  EXPECT_EQ(a.status, 503);
  EXPECT_EQ(a.body, "x");
  EXPECT_EQ(a.headers.count("a"), 0u);
}

TEST(HttpClient, RedirectsAreNotFollowed) {
  TestServer other([](Peer& peer, const std::string&, int) { peer.say(answer("no")); });
  const HttpAnswer a = ask(answer(
      "", "302 Found", "Location: http://127.0.0.1:" + std::to_string(other.port()) + "/\r\n"));
  EXPECT_EQ(a.status, 302);
  EXPECT_FALSE(a.ok());
  EXPECT_EQ(other.connections(), 0);
}

TEST(HttpClient, NobodyListens) {
  int port = 0;
  {
    TestServer server([](Peer&, const std::string&, int) {});
    port = server.port();
    EXPECT_EQ(try_connect("127.0.0.1", port, 1), HttpEnd::kAnswered);
  }
  EXPECT_EQ(try_connect("127.0.0.1", port, 1), HttpEnd::kRefused);
  EXPECT_EQ(try_connect("localhost", port, 1), HttpEnd::kRefused);
  const HttpAnswer a = http_call(get(port), quick());
  EXPECT_EQ(a.end, HttpEnd::kRefused);
  EXPECT_EQ(a.status, 0);
  EXPECT_NE(a.error, "");
  EXPECT_EQ(try_connect("127.0.0.1", 0, 1), HttpEnd::kUnreachable);
  EXPECT_EQ(try_connect("127.0.0.1", 70000, 1), HttpEnd::kUnreachable);
}

TEST(HttpClient, ConnectedAndSilent) {
  TestServer server([](Peer& peer, const std::string&, int) { peer.pause(10000); });
  const HttpAnswer a = http_call(get(server.port()), quick());
  EXPECT_EQ(a.end, HttpEnd::kNoAnswer);
  EXPECT_GE(a.end_ns - a.sent_ns, 190'000'000);
}

TEST(HttpClient, AHeadThatDripsIsNoAnswer) {
  TestServer server([](Peer& peer, const std::string&, int) {
    peer.say("HTTP/1.1 200 OK\r\n");
    while (peer.pause(10) && peer.say("A: 1\r\n")) {
    }
  });
  EXPECT_EQ(http_call(get(server.port()), quick()).end, HttpEnd::kNoAnswer);
}

TEST(HttpClient, ABodyThatStalls) {
  TestServer server([](Peer& peer, const std::string&, int) {
    peer.say("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc");
    peer.pause(10000);
  });
  const HttpAnswer a = http_call(get(server.port()), quick());
  EXPECT_EQ(a.end, HttpEnd::kStalled);
  EXPECT_EQ(a.status, 200);
  EXPECT_EQ(a.body, "abc");
  EXPECT_FALSE(a.ok());
}

TEST(HttpClient, ABodyThatDripsForEver) {
  TestServer server([](Peer& peer, const std::string&, int) {
    peer.say("HTTP/1.1 200 OK\r\n\r\n");
    while (peer.pause(5) && peer.say("x")) {
    }
  });
  HttpLimits limits = quick();
  limits.total_s = 0.3;
  EXPECT_EQ(http_call(get(server.port()), limits).end, HttpEnd::kTooSlow);
}

TEST(HttpClient, ClosedInTheMiddle) {
  EXPECT_EQ(ask("").end, HttpEnd::kClosed);
  EXPECT_EQ(ask("HTTP/1.1 200").end, HttpEnd::kClosed);
  EXPECT_EQ(ask("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc").end, HttpEnd::kClosed);
  const HttpAnswer a = ask("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
  EXPECT_EQ(a.end, HttpEnd::kClosed);
  EXPECT_EQ(a.body, "hello");
  TestServer server([](Peer& peer, const std::string&, int) {
    peer.say("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc");
    peer.pause(20);
    peer.reset();
  });
  EXPECT_EQ(http_call(get(server.port()), quick()).end, HttpEnd::kClosed);
}

TEST(HttpClient, AContentLengthThatIsTooSmallIsSaid) {
  const HttpAnswer a = ask("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcdef");
  EXPECT_TRUE(a.ok());
  EXPECT_EQ(a.body, "abc");
  EXPECT_TRUE(a.left_over);
}

TEST(HttpClient, WhatIsNotHttp) {
  EXPECT_EQ(ask("SSH-2.0-OpenSSH_9.2\r\n\r\n").end, HttpEnd::kMalformed);
  EXPECT_EQ(ask(std::string("\0\xff\x01\r\n\r\n", 7)).end, HttpEnd::kMalformed);
  EXPECT_EQ(ask("HTTP/1.1 200 OK\r\nContent-Length: ten\r\n\r\n").end, HttpEnd::kMalformed);
  EXPECT_EQ(ask("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n").end, HttpEnd::kMalformed);
  EXPECT_EQ(ask("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n").end,
            HttpEnd::kMalformed);
  EXPECT_EQ(
      ask("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\nabc").end,
      HttpEnd::kMalformed);
}

TEST(HttpClient, HeadsWithoutEnd) {
  const auto flood = [](const std::string& line) {
    TestServer server([&](Peer& peer, const std::string&, int) {
      peer.say("HTTP/1.1 200 OK\r\n");
      while (peer.say(line)) {
      }
    });
    return http_call(get(server.port()), quick());
  };
  EXPECT_EQ(flood("A: " + std::string(1000, 'x') + "\r\n").end, HttpEnd::kTooLarge);
  EXPECT_EQ(flood(std::string(1000, 'x')).end, HttpEnd::kTooLarge);
}

TEST(HttpClient, BodiesWithoutEnd) {
  HttpLimits limits = quick();
  limits.body_bytes = 100'000;
  limits.keep_bytes = 10;
  const auto flood = [&](const std::string& head, const std::string& more) {
    TestServer server([&](Peer& peer, const std::string&, int) {
      peer.say("HTTP/1.1 200 OK\r\n" + head + "\r\n");
      while (peer.say(more)) {
      }
    });
    return http_call(get(server.port()), limits);
  };
  const HttpAnswer a = flood("", std::string(1000, 'x'));
  EXPECT_EQ(a.end, HttpEnd::kTooLarge);
  EXPECT_EQ(a.body, "xxxxxxxxxx");
  EXPECT_LE(a.body_bytes, 100'000u);
  EXPECT_EQ(flood("Transfer-Encoding: chunked\r\n", "1\r\nx\r\n").end, HttpEnd::kTooLarge);
  EXPECT_EQ(flood("Transfer-Encoding: chunked\r\n", "1;" + std::string(1000, 'e')).end,
            HttpEnd::kTooLarge);
  EXPECT_EQ(flood("Transfer-Encoding: chunked\r\n", "ffffffffffffff\r\nx").end, HttpEnd::kTooLarge);
  EXPECT_EQ(ask("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n").end,
            HttpEnd::kMalformed);
  EXPECT_EQ(ask("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n").end, HttpEnd::kTooLarge);
}

TEST(HttpClient, EnoughIsEnough) {
  TestServer server([](Peer& peer, const std::string&, int) {
    peer.say("HTTP/1.1 200 OK\r\n\r\nabc");
    peer.pause(10000);
  });
  const HttpAnswer a = http_call(get(server.port()), quick(), nullptr,
                                 [](std::string_view, std::int64_t) { return false; });
  EXPECT_EQ(a.end, HttpEnd::kStopped);
}

TEST(HttpClient, CancelledWhileItWaits) {
  TestServer server([](Peer& peer, const std::string&, int) { peer.pause(30000); });
  CancelToken cancel;
  HttpLimits patient;
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    cancel.cancel();
  });
  const HttpAnswer a = http_call(get(server.port()), patient, &cancel);
  other.join();
  EXPECT_EQ(a.end, HttpEnd::kCancelled);
  EXPECT_EQ(http_call(get(server.port()), patient, &cancel).end, HttpEnd::kCancelled);
}

TEST(HttpClient, ARequestLargerThanASocketsBuffer) {
  TestServer reader([](Peer& peer, const std::string& request, int) {
    peer.say(answer(std::to_string(testing::body_of(request).size())));
  });
  HttpRequest request = get(reader.port());
  request.method = "POST";
  request.body.assign(8 << 20, 'x');
  EXPECT_EQ(http_call(request, HttpLimits{}).body, std::to_string(8 << 20));
}

TEST(HttpClient, LeavesNoDescriptor) {
  const int before = testing::open_descriptors();
  ask(answer("x"));
  ask("garbage\r\n\r\n");
  EXPECT_EQ(testing::open_descriptors(), before);
}

}  // namespace
}  // namespace warmgate::target
