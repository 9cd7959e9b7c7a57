// What the engine tells about itself. Everything goes through here, so that repeated events are
// folded: one line the first time a distinct thing happens in a phase, one with the count at its
// end.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "harness/trace/wire.h"

namespace warmgate::engine {

/// Which layer speaks. id -1: the engine as a whole.
struct LayerRef {
  int id = -1;
  std::string_view kind;  // swaonly c4a c128a
  std::string_view role;  // target draft
};

/// Thrown by require(): the resource is really missing. Carries what the `fault` event needs.
class ResourceMissing : public std::runtime_error {
 public:
  ResourceMissing(const std::string& message, LayerRef layer, std::string resource,
                  std::string function, std::string file, int line);
  LayerRef layer;
  std::string resource, function, file;
  int line;
};

class Recorder {
 public:
  explicit Recorder(trace::EventWriter& writer) : writer_(writer) {}

  void phase_begin(std::string_view phase);
  /// Sends the counts of the phase's launches and collectives, then phase_end with `extra` fields
  /// (a Line built with any `ev`; only its fields are used) and status ok or failed.
  void phase_end(std::string_view status, const trace::Line* extra = nullptr);
  /// "" before the first phase and between two.
  const std::string& phase() const { return phase_; }

  /// One launch of `kernel`; `key` is "" for kernels without run-time key. `signature` says dtype,
  /// rank, alignment and integer class of the arguments. 40 ns when seen before in this phase: the
  /// texts are found by their addresses and then compared, so callers that keep them pay no hash.
  /// Events: one at the first launch, with that launch's rows and its number (`site`) within the
  /// phase. At the end of the phase, kernels with a key once more with final true, their count and
  /// the rows of all launches together; all kernels as [site, count, rows] in phase_end's
  /// `launches`, since a line each would double the trace.
  /// True where it is the first.
  bool launch(std::string_view kernel, std::string_view key, std::string_view signature,
              const LayerRef& layer, std::int64_t rows);
  /// Called for each collective after it was entered; run-length coded.
  void collective(std::string_view communicator, std::string_view kind, std::int64_t bytes,
                  std::int64_t seq);
  /// Sends once per distinct (phase, text); for alloc, workspace, requires and the like.
  void once(const trace::Line& line);
  void send(const trace::Line& line) const;
  void counter(std::string_view name, double value);
  void stage(std::string_view stage, std::string_view status);
  void skip(std::string_view step, std::string_view reason, bool declared);
  /// Still alive: sends `heartbeat` if nothing was sent for a second.
  void heartbeat();

 private:
  struct Launch {
    std::string kernel, key, signature, kind, role;
    int layer = -1;
    std::int64_t site = 0, count = 0, rows = 0;
  };
  /// A launch as one caller names it. Trusted only after its texts were compared: addresses may be
  /// those of temporaries.
  struct Alias {
    const char *kernel = nullptr, *key = nullptr, *signature = nullptr, *kind = nullptr,
               *role = nullptr;
    Launch* launch = nullptr;
  };
  Launch* find_or_add(std::string_view kernel, std::string_view key, std::string_view signature,
                      const LayerRef& layer, std::int64_t rows);
  void remember(const Alias& alias);
  static std::size_t hash(const Alias& alias);
  void tell(const Launch& launch, bool final) const;
  void count_launches(trace::Line& phase_end);
  void flush_collectives();

  trace::EventWriter& writer_;
  std::string phase_;
  mutable std::int64_t last_sent_ns_ = 0;              // of the monotonic clock
  std::deque<Launch> launches_;                        // of this phase; addresses stay
  std::unordered_map<std::string, Launch*> by_texts_;  // their five texts, joined
  std::vector<Alias> aliases_;                         // open addressing, a power of two
  std::size_t alias_count_ = 0;
  std::unordered_set<std::string> once_;
  struct {
    std::string communicator, kind;
    std::int64_t bytes = 0, seq = 0, count = 0;
  } run_;
};

}  // namespace warmgate::engine
