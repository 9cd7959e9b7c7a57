// What is said of a server that is asked whether it is ready and never says yes.
#include "harness/target/server/clocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/target/server/test_server.h"

namespace warmgate::target::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class Kept : public EventSink {
 public:
  void add(trace::Event event) override {
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
  }
  void wake() override {}
  std::vector<trace::Event> events() {
    const std::lock_guard lock(mutex_);
    return events_;
  }

 private:
  std::mutex mutex_;
  std::vector<trace::Event> events_;
};

// Asked until `enough` connections came (and a moment more), then given up.
trace::Event given_up(int port, const std::function<bool()>& enough, int more_ms = 20) {
  Kept sink;
  CancelToken cancel;
  HealthProbe health;
  health.path = "/health";
  {
    Clocks clocks(ClockSpec{"server", 0, "127.0.0.1", port, health, ""}, sink, cancel);
    clocks.start();
    while (!enough()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::this_thread::sleep_for(std::chrono::milliseconds(more_ms));
    cancel.cancel();
    EXPECT_FALSE(clocks.wait_ready());
  }
  trace::Event last;
  for (trace::Event& event : sink.events()) {
    if (event.ev == "http" && event.str("when") == "never ready") last = std::move(event);
  }
  EXPECT_EQ(last.ev, "http");
  return last;
}

trace::Event given_up(const TestServer::Script& script, int more_ms = 20) {
  TestServer server(script);
  // The first connection is that of the clock `port`.
  return given_up(
      server.port(), [&] { return server.heard().size() >= 3; }, more_ms);
}

TEST(Clocks, AServerThatIsNeverReadySaysWhatItAnswered) {
  const auto always = [](const std::string& text) {
    return [text](Peer& peer, const std::string&, int) { peer.say(text); };
  };
  struct Case {
    TestServer::Script script;
    std::string last;
  };
  const Case cases[] = {
      {always(answer("", "302 Found", "Location: /login\r\n")),
       "HTTP 302, a redirect, which is not followed"},
      {always(answer("broken", "500 Internal Server Error")), "HTTP 500"},
      {always("220 mail.example.org ESMTP\r\n"), "the answer is not HTTP"},
      {always("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nab"),
       "HTTP 200, closed in the middle of the body"},
      {always(""), "closed without an answer"},
  };
  for (const Case& c : cases) {
    const trace::Event event = given_up(c.script);
    EXPECT_EQ(event.str("last"), c.last);
    EXPECT_EQ(event.str("path"), "/health") << c.last;
    EXPECT_EQ(event.str("clock"), "health") << c.last;
    EXPECT_GE(event.num("asked"), 2) << c.last;
    EXPECT_EQ(event.num("wanted"), 200) << c.last;
  }
}

TEST(Clocks, AnAnswerThatDripsIsNotAnswered) {
  TestServer server([](Peer& peer, const std::string&, int) {
    for (const char c : std::string("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: ....."))
      if (!peer.say({&c, 1}) || !peer.pause(20)) return;
    peer.pause(5000);
  });
  // It comes to its second byte at least.
  const trace::Event event = given_up(
      server.port(), [&] { return server.heard().size() >= 2; }, 60);
  EXPECT_EQ(event.num("asked"), 1);
  EXPECT_THAT(event.str("last"), StartsWith("only "));
  EXPECT_THAT(event.str("last"), HasSubstr(" of a head came within 0."));
}

TEST(Clocks, OneThatAcceptsAndIsSilent) {
  TestServer server([](Peer& peer, const std::string&, int) { peer.pause(5000); });
  const trace::Event event = given_up(server.port(), [&] { return server.heard().size() >= 2; });
  EXPECT_THAT(event.str("last"), StartsWith("nothing came within 0."));
}

TEST(Clocks, APortThatNobodyOpens) {
  int port = 0;
  {
    const TestServer gone([](Peer&, const std::string&, int) {});
    port = gone.port();
  }
  const trace::Event event = given_up(
      port, [] { return true; }, 120);
  EXPECT_EQ(event.str("clock"), "port");
  EXPECT_EQ(event.num("port"), port);
  EXPECT_EQ(event.str("last"), "refused");
  EXPECT_GE(event.num("asked"), 1);
}

}  // namespace
}  // namespace warmgate::target::testing
