// Collectives of one rank. On meta they exchange the calls, not the payload: every rank must enter
// the same operation with the same size in the same order, within the deadline.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

namespace warmgate::engine {

/// Another rank entered another operation, died, or did not come in time. message names the ranks.
class CollectiveError : public std::runtime_error {
 public:
  CollectiveError(const std::string& message, std::string kind_in)
      : std::runtime_error(message), kind(std::move(kind_in)) {}
  std::string kind;  // mismatch | deadline | peer_failed
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
};

/// world 1: nothing to wait for, sequence numbers all the same.
std::unique_ptr<Collectives> make_local_collectives();
/// One memfd shared by all ranks (made by the harness, inherited), futex waits, no spinning.
/// `deadline_ms` bounds each wait. Throws std::runtime_error if fd is not such a memfd.
std::unique_ptr<Collectives> make_shared_collectives(int fd, int rank, int world,
                                                     std::int64_t deadline_ms);
/// Size of the memfd for a world; the harness calls ftruncate with it (it does not link this file:
/// the same constant is in harness/run/native.cc, and a test holds them equal).
std::int64_t collectives_bytes(int world);

}  // namespace warmgate::engine
