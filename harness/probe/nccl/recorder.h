// What the communicators of a process do, as events: which there are, each collective as it is
// entered, each Send and Recv, and of each communicator the last thing that was entered.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string_view>

#include "harness/probe/nccl/last_states.h"
#include "harness/probe/report.h"

namespace warmgate::probe::nccl {

/// A collective as one rank asks for it. Texts are NCCL's own words.
struct Operation {
  std::string_view kind;      // AllReduce, AllGather …
  std::string_view datatype;  // ncclFloat32 …
  std::uint64_t elements = 0;
  int root = 0;
  std::int64_t seq = -1;  // of NCCL's, per communicator and kind; -1: not said
  std::string_view algorithm, protocol;
  bool captured = false;  // into a graph; only v5 says so
};

struct Transfer {
  std::string_view kind;  // Send, Recv
  std::string_view datatype;
  std::uint64_t elements = 0;
  int peer = -1;
};

/// One rank's side of a communicator. Never freed: NCCL's threads may still hold it.
struct Communicator {
  std::size_t index = 0;
  char name[49] = "";  // as the host named it; what is not printable ASCII is '?'
  char id[72] = "";    // equal on all its ranks
  std::uint64_t hash = 0;
  int api = 0, member = -1, ranks = -1, nodes = -1;
  bool known = false, closed = false;
  std::uint64_t entered = 0, launched = 0, p2p_called = 0, p2p_launched = 0;
  std::uint64_t digest = 0;  // of all collectives in their order
  std::uint64_t elements = 0, bytes = 0;
  int root = 0;
  bool captured = false;
  char kind[24] = "", type[16] = "";
  std::int64_t t_ns = 0;
  std::int64_t seq_of_kind[16];
};

class Recorder {
 public:
  /// Lines a communicator: past them only its last operation is kept, and a digest of all of them
  /// at each power of two. The evidence of a hang never waits for a line: the last operation is
  /// written in place as it is entered.
  static constexpr std::uint64_t kLinesEach = 500;

  explicit Recorder(Report& report) : report_(report) {}
  /// Also where the last operations are kept. False: nobody listens.
  bool open_from_environment();

  /// A communicator by interface version `api`; nullptr once there are too many (counted).
  Communicator* open(int api);
  void identify(Communicator& communicator, const char* name, std::uint64_t hash, int member,
                int ranks, int nodes);
  /// A collective is entered: it will be waited for until every member has entered it.
  void enter(Communicator& communicator, const Operation& operation);
  /// A collective that was entered before is on its way to the device.
  void launch(Communicator& communicator);
  void call_transfer(Communicator& communicator);
  void transfer(Communicator& communicator, const Transfer& transfer);
  void close(Communicator& communicator);

  /// The communicator that a pointer of NCCL's means; nullptr if it is none of ours, or closed.
  Communicator* find(void* context);
  void totals();
  std::int64_t own_ns() const { return own_ns_.load(std::memory_order_relaxed); }
  std::uint64_t calls() const { return calls_.load(std::memory_order_relaxed); }

  /// Time that is taken from the host, summed.
  class Busy {
   public:
    explicit Busy(Recorder& recorder);
    ~Busy();

   private:
    Recorder& recorder_;
    std::int64_t since_;
  };

 private:
  void keep(const Communicator& communicator);

  Report& report_;
  LastStates last_;
  std::mutex mutex_;
  Communicator communicators_[LastStates::kCommunicators];
  std::size_t used_ = 0, left_out_ = 0;
  std::atomic<std::int64_t> own_ns_{0};
  std::atomic<std::uint64_t> calls_{0};
};

/// "float32" of "ncclFloat32".
std::string_view plain_type(std::string_view datatype, char (&out)[16]);
/// Bytes of one element. NCCL has a name for every type but ncclUint8 ("Unknown"): 1.
std::uint64_t element_bytes(std::string_view type);
/// A C string of the host's, at most `most` bytes of it; "" for nullptr.
std::string_view bounded(const char* text, std::size_t most);

}  // namespace warmgate::probe::nccl
