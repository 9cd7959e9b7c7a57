#include "harness/target/server/stream.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "harness/trace/sha256.h"

namespace warmgate::target {

using nlohmann::json;

PayloadReader::PayloadReader(Kind kind, OnPayload on_payload)
    : kind_(kind), on_payload_(std::move(on_payload)) {}

void PayloadReader::feed(std::string_view bytes, std::int64_t t_ns) {
  while (!bytes.empty()) {
    // \r\n may come in two pieces; JSON lines end with \n alone, \r is white space there.
    if (after_cr_ && bytes[0] == '\n') {
      after_cr_ = false;
      bytes.remove_prefix(1);
      continue;
    }
    after_cr_ = false;
    const auto end = kind_ == Kind::kSse ? bytes.find_first_of("\r\n") : bytes.find('\n');
    const std::string_view piece = bytes.substr(0, end);
    if (rest_.size() + piece.size() > kMaxPayload) {
      too_long_ = true;
      rest_.clear();
    } else if (!too_long_) {
      rest_ += piece;
    }
    if (end == std::string_view::npos) return;
    after_cr_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    if (too_long_) {
      ++dropped_;
      too_long_ = false;
    } else {
      const std::string whole = std::exchange(rest_, {});
      line(whole, t_ns);
    }
    rest_.clear();
  }
}

void PayloadReader::line(std::string_view text, std::int64_t t_ns) {
  if (kind_ == Kind::kJsonLines) {
    if (text.find_first_not_of(" \t\r") != std::string_view::npos) on_payload_(text, t_ns);
    return;
  }
  if (text.empty()) return give(t_ns);
  if (!text.starts_with("data")) return;  // event, id, retry, comments
  text.remove_prefix(4);
  if (!text.empty() && text[0] != ':') return;
  if (!text.empty()) text.remove_prefix(1);
  if (!text.empty() && text[0] == ' ') text.remove_prefix(1);
  if (has_data_) data_ += '\n';
  if (data_.size() + text.size() > kMaxPayload) {
    ++dropped_;
    data_.clear();
    has_data_ = false;
    return;
  }
  data_ += text;
  has_data_ = true;
}

void PayloadReader::give(std::int64_t t_ns) {
  if (has_data_) on_payload_(data_, t_ns);
  data_.clear();
  has_data_ = false;
}

void PayloadReader::finish(std::int64_t t_ns) {
  if (too_long_) {
    ++dropped_;
  } else if (!rest_.empty()) {
    line(std::exchange(rest_, {}), t_ns);
  }
  rest_.clear();
  too_long_ = false;
  if (kind_ == Kind::kSse) give(t_ns);
}

namespace {

using Pointers = std::vector<json::json_pointer>;

// What is no pointer is left out: presets are checked where they are read.
Pointers pointers(const std::vector<std::string>& texts) {
  Pointers out;
  for (const std::string& each : texts) {
    try {
      out.emplace_back(each);
    } catch (const json::exception&) {
    }
  }
  return out;
}

const json* first_of(const json& document, const Pointers& all) {
  for (const auto& each : all) {
    if (!document.contains(each)) continue;
    const json& value = document.at(each);
    if (!value.is_null()) return &value;
  }
  return nullptr;
}

bool holds(const json& value) { return value.is_boolean() ? value.get<bool>() : !value.is_null(); }

void count(const json& document, const Pointers& all, std::optional<std::int64_t>& into) {
  const json* value = first_of(document, all);
  if (value == nullptr || !value->is_number()) return;
  const double number = value->get<double>();
  if (number >= 0 && number < 1e15) into = static_cast<std::int64_t>(number);
}

}  // namespace

struct AnswerReader::Impl {
  Impl(const Completion& c, const std::string& request_class)
      : completion(c),
        whole(c.stream == "none"),
        text(pointers(c.text)),
        tokens(pointers(c.tokens)),
        prompt_tokens(pointers(c.prompt_tokens)),
        error(pointers(c.error)),
        reader(
            c.stream == "json_lines" ? PayloadReader::Kind::kJsonLines : PayloadReader::Kind::kSse,
            [this](std::string_view payload, std::int64_t t_ns) { take(payload, t_ns); }) {
    if (const auto it = c.shows.find(request_class); it != c.shows.end())
      shows = pointers(it->second);
    if (c.done.starts_with('/')) done = pointers({c.done});
    for (const auto& [figure, texts] : c.figures) figures[figure] = pointers(texts);
  }

  void feed(std::string_view bytes, std::int64_t t_ns) {
    if (!whole) return reader.feed(bytes, t_ns);
    const std::size_t room =
        PayloadReader::kMaxPayload - std::min(PayloadReader::kMaxPayload, body.size());
    body += bytes.substr(0, room);
    body_cut = body_cut || bytes.size() > room;
  }

  void take(std::string_view payload, std::int64_t t_ns) {
    if (!completion.done.empty() && payload == completion.done) {
      result.done = true;
      return;
    }
    const json document = json::parse(payload, nullptr, false);
    if (document.is_discarded()) {
      ++result.bad_payloads;
      return;
    }
    if (const json* why = first_of(document, error)) {
      const std::string said = why->is_string()
                                   ? why->get<std::string>()
                                   : why->dump(-1, ' ', false, json::error_handler_t::replace);
      if (!said.empty() && result.error.empty()) result.error = said.substr(0, 500);
    }
    if (const json* end = first_of(document, done); end != nullptr && holds(*end))
      result.done = true;
    if (first_of(document, shows) != nullptr) result.class_seen = true;
    count(document, prompt_tokens, result.prompt_tokens);
    // A later chunk that says it again says it better.
    for (const auto& [figure, places] : figures) {
      const json* value = first_of(document, places);
      if (value != nullptr && value->is_number()) result.figures[figure] = value->get<double>();
    }
    const auto before = result.tokens;
    count(document, tokens, result.tokens);
    const std::int64_t more = result.tokens.value_or(0) - before.value_or(0);
    const json* value = first_of(document, text);
    if (value == nullptr || !value->is_string()) return;
    std::string piece = value->get<std::string>();
    if (completion.text_so_far) {
      const std::size_t known = std::min<std::size_t>(piece.size(), result.text_bytes);
      piece.erase(0, known);
    }
    if (!piece.empty()) {
      add(piece);
      tick(full, t_ns, more);
    }
    // A server without tokenizer, or half a character, gives a token without text.
    tick(any, t_ns, more);
  }

  void add(const std::string& piece) {
    result.text_bytes += piece.size();
    const std::size_t room =
        StreamResult::kMaxText - std::min(StreamResult::kMaxText, result.text.size());
    result.text += piece.substr(0, room);
    if (result.text_bytes <= StreamResult::kMaxHashed) hashed += piece;
  }

  // Times of chunks.
  struct Clock {
    std::int64_t chunks = 0, first_ns = 0, last_ns = 0;
    std::vector<double> per_chunk, per_token;
    bool counted = true;  // every chunk said how many tokens there are
  };
  static void tick(Clock& clock, std::int64_t t_ns, std::int64_t more) {
    if (more <= 0) clock.counted = false;
    if (clock.chunks++ == 0) {
      clock.first_ns = t_ns;
    } else {
      const double gap = static_cast<double>(t_ns - clock.last_ns) / 1e6;
      if (clock.per_chunk.size() < StreamResult::kMaxGaps) clock.per_chunk.push_back(gap);
      for (std::int64_t i = 0; i < more && clock.per_token.size() < StreamResult::kMaxGaps; ++i)
        clock.per_token.push_back(gap / static_cast<double>(more));
    }
    clock.last_ns = t_ns;
  }

  StreamResult finish(std::int64_t t_ns) {
    if (whole) {
      if (body_cut) {
        ++result.bad_payloads;
      } else if (!body.empty()) {
        take(body, t_ns);
      }
      if (completion.done.empty()) result.done = true;
    } else {
      reader.finish(t_ns);
      if (completion.done.empty()) result.done = true;
    }
    result.bad_payloads += reader.dropped();
    const bool silent = full.chunks == 0 && result.tokens.value_or(0) > 0;
    Clock& clock = silent ? any : full;
    result.chunks = clock.chunks;
    if (!whole) {
      result.first_ns = clock.first_ns;
      result.last_ns = clock.last_ns;
      const bool by_token = clock.counted && clock.chunks > 0;
      result.gaps_between = by_token ? "token" : "chunk";
      result.gaps_ms = std::move(by_token ? clock.per_token : clock.per_chunk);
    }
    if (result.tokens) {
      result.tokens_from = "usage";
    } else if (!whole && result.chunks > 0) {
      result.tokens = result.chunks;
      result.tokens_from = "chunks";
    }
    if (result.text_bytes <= StreamResult::kMaxHashed)
      result.text_sha256 = trace::sha256_hex(hashed);
    return std::move(result);
  }

  const Completion& completion;
  bool whole;  // not streamed: the body is one document
  Pointers text, tokens, prompt_tokens, error, shows, done;
  std::map<std::string, Pointers> figures;
  StreamResult result;
  Clock full, any;
  std::string body, hashed;
  bool body_cut = false;
  PayloadReader reader;
};

AnswerReader::AnswerReader(const Completion& completion, std::string request_class)
    : impl_(std::make_unique<Impl>(completion, request_class)) {}
AnswerReader::~AnswerReader() = default;
void AnswerReader::feed(std::string_view bytes, std::int64_t t_ns) { impl_->feed(bytes, t_ns); }
StreamResult AnswerReader::finish(std::int64_t t_ns) { return impl_->finish(t_ns); }

}  // namespace warmgate::target
