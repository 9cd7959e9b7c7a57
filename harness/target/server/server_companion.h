// Follows a server from outside: its clocks, its log, the work it is asked for, its counters, what
// it compiles late.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "harness/target/companion.h"
#include "harness/target/server/census.h"
#include "harness/target/server/gpu.h"
#include "harness/target/server/log_follower.h"
#include "harness/target/server/preset.h"
#include "harness/target/server/stores.h"
#include "harness/target/server/workload.h"

namespace warmgate::target {

struct ServerMemberSpec {
  std::string name, host, log;  // log: grammar
  int rank = 0;                 // of its worker
  int port = 0;                 // 0: it opens none
  double clock_offset_s = 0;
  bool here = true;  // false: in a container or elsewhere, so what it compiles is not seen
};

struct ServerCompanionSpec {
  ServerPreset preset;
  std::vector<ServerMemberSpec> members;
  std::size_t asked = 0;  // index of the member that gets the requests
  WorkloadSpec workload;  // host, port, rank and completion are those of `asked`
  std::string model;      // name in bodies; "" = what the server lists first
  PreparedStores stores;
  std::vector<std::string> gpus;  // UUIDs that it may use; their memory has to come back
  double settle_s = 2;            // within this
  /// A server that said ready and served nobody may still become able to within this.
  double patience_s = 60;
};

/// `grammars` may be null (a build without log grammars): then the log is not observed.
std::unique_ptr<Companion> make_server_companion(ServerCompanionSpec spec,
                                                 const explain::Grammars* grammars);

}  // namespace warmgate::target
