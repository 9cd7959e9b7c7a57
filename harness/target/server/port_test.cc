#include "harness/target/server/port.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <unistd.h>

#include <set>
#include <vector>

namespace warmgate::target {
namespace {

using ::testing::HasSubstr;

// A socket on this port of the loopback address; 0 = any.
Fd listen_on(int port, bool listening, int* got = nullptr) {
  Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_TRUE(!listening || ::listen(fd.get(), 1) == 0);
  ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size);
  if (got != nullptr) *got = ntohs(address.sin_port);
  return fd;
}

TEST(Ports, FreeOnesCanBeListenedOn) {
  const PortLease lease = PortLease::free_port("127.0.0.1");
  ASSERT_TRUE(lease.held());
  EXPECT_GE(lease.port(), 1025);
  EXPECT_EQ(who_listens("127.0.0.1", lease.port()), std::nullopt);
  const Fd server = listen_on(lease.port(), true);  // the lease is in nobody's way
}

TEST(Ports, NoTwoRunsGetTheSame) {
  std::vector<PortLease> leases;
  std::set<int> ports;
  for (int i = 0; i < 50; ++i) {
    leases.push_back(PortLease::free_port("127.0.0.1"));
    EXPECT_TRUE(ports.insert(leases.back().port()).second);
  }
  EXPECT_FALSE(PortLease::take(leases[0].port()).held());
  const int first = leases[0].port();
  leases.clear();
  EXPECT_TRUE(PortLease::take(first).held());  // gone with its holder
}

TEST(Ports, WhoListensIsNamed) {
  int port = 0;
  const Fd server = listen_on(0, true, &port);
  const auto who = who_listens("127.0.0.1", port);
  ASSERT_TRUE(who);
  EXPECT_THAT(*who, HasSubstr("pid " + std::to_string(::getpid()) + " ("));
  EXPECT_THAT(*who, HasSubstr("warmgate_target_test"));
}

TEST(Ports, BoundAndSilentIsNoListener) {
  int port = 0;
  const Fd server = listen_on(0, false, &port);
  EXPECT_EQ(who_listens("127.0.0.1", port), std::nullopt);
}

TEST(Ports, AForeignAddressIsNotOursToJudge) {
  EXPECT_EQ(who_listens("203.0.113.7", 80), std::nullopt);
}

}  // namespace
}  // namespace warmgate::target
