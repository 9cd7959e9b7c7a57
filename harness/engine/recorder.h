// What the engine tells about itself. Everything goes through here, so that repeated events are
// folded: one line the first time a distinct thing happens in a phase, one with the count at its end.
#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "harness/trace/wire.h"

namespace warmgate::engine {

/// Which layer speaks. id -1: the engine as a whole.
struct LayerRef {
  int id = -1;
  std::string_view kind;   // swaonly c4a c128a
  std::string_view role;   // target draft
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
  const std::string& phase() const { return phase_; }

  /// One launch of `kernel`; `key` is "" for kernels without run-time key. `signature` says dtype,
  /// rank, alignment and integer class of the arguments. 40 ns when seen before in this phase.
  void launch(std::string_view kernel, std::string_view key, std::string_view signature,
              const LayerRef& layer, std::int64_t rows);
  /// Called for each collective after it was entered; run-length coded.
  void collective(std::string_view communicator, std::string_view kind, std::int64_t bytes,
                  std::int64_t seq);
  /// Sends once per distinct (phase, text); for alloc, workspace, requires and the like.
  void once(const trace::Line& line);
  void send(const trace::Line& line);
  void counter(std::string_view name, double value);
  void stage(std::string_view stage, std::string_view status);
  void skip(std::string_view step, std::string_view reason, bool declared);

 private:
  struct LaunchCount {
    std::string line_prefix;
    std::int64_t count = 0, rows = 0;
  };
  void flush_collectives();
  trace::EventWriter& writer_;
  std::string phase_;
  std::unordered_map<std::string, LaunchCount> launches_;
  std::unordered_map<std::string, std::int64_t> once_;
  struct { std::string communicator, kind; std::int64_t bytes = 0, seq = 0, count = 0; } run_;
};

}  // namespace warmgate::engine
