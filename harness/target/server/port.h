// Ports of servers: free ones, kept from other runs, and who has one that is not.
#pragma once

#include <optional>
#include <string>

#include "harness/target/fd.h"

namespace warmgate::target {

/// A port that no other warmgate of this machine takes while it is held, by a name in the abstract
/// socket namespace: that is as far as the ports themselves (a network namespace), seen by every
/// user, and gone with its holder. Strangers can still come first; then the server says so itself.
class PortLease {
 public:
  PortLease() = default;
  PortLease(PortLease&&) = default;
  PortLease& operator=(PortLease&&) = default;
  int port() const { return port_; }
  /// False where another run of warmgate has it.
  bool held() const { return name_.valid(); }

  /// A port of `host` (an address) that nobody listens on, from below the range from which the
  /// kernel takes ports for outgoing connections, so that none of those takes it first. Throws
  /// std::runtime_error if there is none.
  static PortLease free_port(const std::string& host);
  /// This very port, whoever listens on it; not held() where another run has it.
  static PortLease take(int port);

 private:
  int port_ = 0;
  Fd name_;
};

struct Listener {
  int pid = 0;       // 0: of another user, container or network
  std::string text;  // "pid 4711 (python3 -m http.server 8000)"
};
/// Who has this port; nothing if a server could listen there.
std::optional<Listener> listener_of(const std::string& host, int port);

/// Its text ("pid 4711 (python3 -m http.server 8000)", "somebody, of another user
/// or container"); nothing if a server could listen there.
std::optional<std::string> who_listens(const std::string& host, int port);

}  // namespace warmgate::target
