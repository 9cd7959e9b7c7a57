// Collectives of one rank: every rank must enter the same operation with the same size in the same
// order, within the deadline. Where tensors have no contents the call alone is exchanged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace warmgate::engine {

/// What the bytes of a sum are.
enum class Element : std::uint8_t { kBf16, kFp32 };

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
  /// The same with contents. Sums are taken in fp32, rank 0 first, and rounded once (to nearest,
  /// ties to even), so all ranks get the same bits; `data` is replaced by them. Its size is a
  /// multiple of the element's.
  virtual std::int64_t all_reduce(std::string_view communicator, std::span<std::byte> data,
                                  Element element) = 0;
  /// `all`: what each rank brought, rank 0 first; world times as large as `mine`, else
  /// std::invalid_argument.
  virtual std::int64_t all_gather(std::string_view communicator, std::span<const std::byte> mine,
                                  std::span<std::byte> all) = 0;
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
/// Size of the memfd for a world: a page for all, one a rank, and two pieces of payload a rank, of
/// which only those pages exist that contents went through. The harness calls ftruncate with it (it
/// does not link this file: the same figures are in harness/run/prepare.cc, and a test holds them
/// equal).
std::int64_t collectives_bytes(int world);

}  // namespace warmgate::engine
