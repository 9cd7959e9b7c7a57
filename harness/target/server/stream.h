// A streamed answer, chunk by chunk: server-sent events or JSON lines, and what their fields mean
// according to the preset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/target/server/preset.h"

namespace warmgate::target {

/// Splits a body into payloads: the data of each server-sent event, or each non-empty line.
class PayloadReader {
 public:
  static constexpr std::size_t kMaxPayload = 1 << 20;  // a longer one is dropped and counted

  enum class Kind { kSse, kJsonLines };
  using OnPayload = std::function<void(std::string_view payload, std::int64_t t_ns)>;
  PayloadReader(Kind kind, OnPayload on_payload);
  void feed(std::string_view bytes, std::int64_t t_ns);
  /// The body ended. A last event without its empty line is given too.
  void finish(std::int64_t t_ns);
  std::size_t dropped() const { return dropped_; }

 private:
  void line(std::string_view text, std::int64_t t_ns);
  void give(std::int64_t t_ns);
  Kind kind_;
  OnPayload on_payload_;
  std::string rest_, data_;
  bool has_data_ = false, after_cr_ = false, too_long_ = false;
  std::size_t dropped_ = 0;
};

/// What came of one answer.
struct StreamResult {
  static constexpr std::size_t kMaxText = 16 * 1024;
  static constexpr std::size_t kMaxHashed = 8 << 20;
  static constexpr std::size_t kMaxGaps = 100000;

  std::string text;         // the first kMaxText bytes of what was generated
  std::string text_sha256;  // of all of it; "" beyond kMaxHashed bytes
  std::uint64_t text_bytes = 0;
  std::optional<std::int64_t> tokens, prompt_tokens;
  std::string tokens_from;  // usage: the server counted | chunks: those with text were counted
  std::int64_t chunks = 0;  // that brought something generated
  std::int64_t first_ns = 0, last_ns = 0;  // of those chunks; 0 if the answer was not streamed
  std::vector<double> gaps_ms;             // between tokens, or else between chunks
  /// token: the server says with each chunk how many there are so far; chunk: it does not, and a
  /// chunk of several tokens (drafts) counts as one.
  std::string gaps_between = "chunk";
  bool done = false;                      // the end that the preset promises came
  std::string error;                      // an error inside the answer, at most 500 bytes
  std::size_t bad_payloads = 0;           // no JSON, or too long
  std::map<std::string, double> figures;  // what it says of Completion::figures
  bool class_seen = false;  // one of Completion::shows of the request's class was there
};

class AnswerReader {
 public:
  /// `completion` outlives the reader. `request_class` as in Completion::classes.
  AnswerReader(const Completion& completion, std::string request_class);
  ~AnswerReader();
  AnswerReader(const AnswerReader&) = delete;
  AnswerReader& operator=(const AnswerReader&) = delete;
  void feed(std::string_view bytes, std::int64_t t_ns);
  StreamResult finish(std::int64_t t_ns);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace warmgate::target
