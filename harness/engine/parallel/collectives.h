// Collectives of one rank. On meta they exchange the calls, not the payload: every rank must enter
// the same operation with the same size in the same order, within the deadline.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

namespace warmgate::engine {

/// One operation as a rank entered it.
struct CollectiveCall {
  std::string communicator, kind;  // all_reduce all_gather barrier all_min
  std::int64_t bytes = 0;          // 0 for a barrier, 8 for all_min
  std::int64_t seq = 0;            // per communicator, from 0
};

/// Another rank entered another operation, died, or did not come in time. message names the ranks.
class CollectiveError : public std::runtime_error {
 public:
  CollectiveError(const std::string& message, std::string kind_in)
      : std::runtime_error(message), kind(std::move(kind_in)) {}
  CollectiveError(const std::string& message, std::string kind_in, int peer_in,
                  CollectiveCall call_in)
      : std::runtime_error(message),
        kind(std::move(kind_in)),
        peer(peer_in),
        call(std::move(call_in)) {}
  std::string kind;     // mismatch | deadline | peer_failed
  int peer = -1;        // the rank that failed, died, did not come or entered something else
  CollectiveCall call;  // what this rank had entered
};

class Collectives {
 public:
  virtual ~Collectives() = default;
  virtual int rank() const = 0;
  virtual int world() const = 0;
  /// Enters one collective of `bytes` on `communicator`; returns its sequence number there.
  virtual std::int64_t all_reduce(std::string_view communicator, std::int64_t bytes) = 0;
  virtual std::int64_t all_gather(std::string_view communicator, std::int64_t bytes) = 0;
  virtual std::int64_t barrier(std::string_view communicator) = 0;
  /// min over ranks of a host value (KV block counts).
  virtual std::int64_t all_min(std::string_view communicator, std::int64_t value) = 0;
  /// Tells the other ranks that this one failed, so that they end at once, naming it.
  virtual void abandon(std::string_view why) = 0;
  /// Sequence number of the latest operation on `communicator`; -1 if there was none.
  virtual std::int64_t last_seq(std::string_view communicator) const {
    (void)communicator;
    return -1;
  }
  /// Called about ten times a second while waiting for other ranks.
  virtual void on_wait(std::function<void()> idle) { (void)idle; }
};

/// world 1: nothing to wait for, sequence numbers all the same.
std::unique_ptr<Collectives> make_local_collectives();
/// One memfd shared by all ranks (made by the harness, inherited), futex waits, no spinning.
/// `deadline_ms` bounds each wait. Throws std::runtime_error if fd is not such a memfd.
///
/// Ranks meet one operation at a time, whatever its communicator: an order that differs between
/// communicators is a mismatch here, where a real library might get away with it or hang.
/// A rank that died is noticed within 0.2 s, if it had come this far at all; else by the deadline.
/// The thread that made the object must outlive its use: it holds the mutex that says "alive".
std::unique_ptr<Collectives> make_shared_collectives(int fd, int rank, int world,
                                                     std::int64_t deadline_ms);
/// Size of the memfd for a world: a page for all and one a rank, 4096 * (1 + world). The harness
/// calls ftruncate with it (it does not link this file: the same constant is in
/// harness/run/native.cc, and a test holds them equal).
std::int64_t collectives_bytes(int world);

}  // namespace warmgate::engine
