// Takes the spans that the processes of one run export (OTLP over HTTP on loopback) and makes
// events of them: `span` {name, ms, status, phase?, service?, pid?, worker?, id?, parent?,
// function?, file?, exceptions?: [{type, message, at_ms, frames: [{function, file, line}]}]}, t
// where it began.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "harness/target/companion.h"
#include "harness/target/server/port.h"
#include "harness/target/server/preset.h"
#include "harness/target/spans/http_server.h"
#include "harness/target/spans/otlp.h"

namespace warmgate::target {

/// What is kept of one run.
inline constexpr std::size_t kMostSpans = 20'000;

class SpanReceiver {
 public:
  /// Which phase a span's name stands for, and where its process says who it is, is data.
  explicit SpanReceiver(SpanFacts facts) : facts_(std::move(facts)) {}

  /// Path of the endpoint that only the worker of this rank is told, so that its spans are its own.
  static std::string path_of(int rank);

  /// From here on `sink` gets events, from the thread of the server that asks. `sink` outlives
  /// close().
  void open(EventSink& sink);
  /// What was recorded from here on is a consequence of our ending the run: no exceptions.
  void mark_end();
  /// One event `probe` {probe: spans, status: attached | not attached, reason, spans, left_out,
  /// requests, refused}: what came, and if nothing came, why that may be.
  void close();

  ServedReply serve(const ServedRequest& request);

 private:
  struct Clock {
    std::int64_t offset_ns = 0;  // monotonic - wall
    std::int64_t blur_ns = 0;
  };
  static Clock read_clock();
  trace::Event event_of(const ReceivedSpan& span, std::optional<int> rank,
                        const Clock& clock) const;
  ServedReply refuse(int status, const std::string& why);
  void hello(std::optional<int> rank);

  const SpanFacts facts_;
  std::mutex mutex_;  // open() and close() against serve()
  EventSink* sink_ = nullptr;
  Clock at_begin_;
  std::atomic<std::int64_t> end_ns_{0};
  std::size_t spans_ = 0, left_out_ = 0, implausible_ = 0, requests_ = 0, refused_ = 0;
  std::string first_refusal_;
  std::map<int, bool> greeted_;
};

}  // namespace warmgate::target
