#include "harness/explain/text.h"

#include <cstring>

#include "harness/trace/secrets.h"

#include "harness/explain/stamps.h"

namespace warmgate::explain::internal {
namespace {

constexpr int kMostLayers = 10;  // wrappers and prefixes of one line, nested

// ` [repeated 3x across cluster]…` of Ray.
void strip_repeated(std::string_view& text, Line& out) {
  constexpr std::string_view kMark = " [repeated ";
  const std::size_t at = text.rfind(kMark);
  if (at == std::string_view::npos) return;
  int times = 0;
  std::size_t end = at + kMark.size();
  for (; end < text.size() && end < at + kMark.size() + 6 && is_digit(text[end]); ++end)
    times = times * 10 + (text[end] - '0');
  if (!text.substr(end).starts_with("x across cluster]")) return;
  out.repeated = std::max(times, 1);
  text = text.substr(0, at);
}

}  // namespace

std::string_view TextLayer::without_escapes(std::string_view raw) {
  std::size_t at = raw.find('\x1b');
  if (at == std::string_view::npos) return raw;
  scratch_.clear();
  std::size_t from = 0;
  while (at != std::string_view::npos) {
    scratch_.append(raw, from, at - from);
    std::size_t end = at + 1;
    if (end < raw.size() && raw[end] == '[') {  // CSI … final byte
      for (++end; end < raw.size() && (raw[end] < '@' || raw[end] > '~'); ++end) {
      }
      end = std::min(raw.size(), end + 1);
    } else if (end < raw.size() &&
               (raw[end] == ']' || raw[end] == '_')) {  // OSC, APC … BEL or ESC \.
      // Buildkite's time marks are APCs.
      const std::size_t stop = raw.find_first_of("\a\x1b", end);
      if (stop == std::string_view::npos) {
        end = raw.size();
      } else {
        end = raw[stop] == '\a' ? stop + 1 : std::min(raw.size(), stop + 2);
      }
    } else {
      end = std::min(raw.size(), end + 1);
    }
    from = end;
    at = raw.find('\x1b', from);
  }
  scratch_.append(raw, from, raw.size() - from);
  return scratch_;
}

std::string_view TextLayer::without_learned(std::string_view text) const {
  if (learned_.empty() || text.size() < learned_.size()) return text;
  for (std::size_t i = 0; i < learned_.size(); ++i) {
    if (learned_[i] == '0' ? !is_digit(text[i]) : learned_[i] != text[i]) return text;
  }
  return text.substr(learned_.size());
}

void TextLayer::read_stripped(std::string_view text, Line& out) {
  for (int i = 0; i < kMostLayers && strip_wrapper(text, out); ++i) {
  }
  if (const std::string_view rest = without_learned(text); rest.size() < text.size()) {
    text = rest;
    for (int i = 0; i < kMostLayers && strip_wrapper(text, out); ++i) {
    }
  }
  if (text.starts_with('{') && strip_json(text, json_)) {
    text = without_escapes(json_);
    // A bar is redrawn within one entry: the last drawing counts.
    if (const std::size_t cr = text.rfind('\r'); cr != std::string_view::npos) {
      text.remove_prefix(cr + 1);
    }
    for (int i = 0; i < kMostLayers && strip_wrapper(text, out); ++i) {
    }
  }
  out.text = text;
  for (int i = 0; i < kMostLayers; ++i) {
    const bool process = text.starts_with('(');
    if (strip_prefix(text, out)) continue;
    // A wrapper may stand between two prefixes, but a message may begin like one.
    if (process || out.form == Form::kNone) {
      if (out.depth > 0 && text.starts_with('[') && strip_wrapper(text, out)) continue;
    }
    break;
  }
  if (out.depth > 0) strip_repeated(text, out);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  out.message = text;
}

void TextLayer::read(std::string_view raw, Line& out) {
  out = Line{};
  read_stripped(without_escapes(raw), out);
}

bool TextLayer::second_chance(std::string_view text, const Knows& knows, Line& out) {
  if (out.form != Form::kNone || out.depth > 0) return false;
  const std::string_view window = text.substr(0, 200);
  // Where a prefix of one of the engines, or a message, might begin: behind a space.
  for (std::size_t at = window.find(' '); at != std::string_view::npos;
       at = window.find(' ', at + 1)) {
    const std::string_view rest = text.substr(at + 1);
    if (rest.empty() || rest[0] == ' ') continue;
    Line trial;
    std::string_view message = rest;
    bool certain =
        strip_prefix(message, trial) &&
        (trial.depth > 0 || trial.form == Form::kVllm || trial.form == Form::kSglangRank ||
         trial.form == Form::kTrt || trial.form == Form::kTrtCpp || trial.form == Form::kLlama ||
         trial.form == Form::kTgi || trial.form == Form::kLmdeploy);
    if (!certain && knows && at < 100) certain = knows(rest);
    if (!certain) continue;
    learned_.assign(text.substr(0, at + 1));
    for (char& c : learned_) {
      if (is_digit(c)) c = '0';
    }
    out = Line{};
    read_stripped(rest, out);
    return true;
  }
  return false;
}

std::string shown_masked(std::string_view text, std::size_t most) {
  return shown(trace::mask_part(text, 0, std::min(text.size(), most + trace::kShapeMargin), {}),
               most);
}

std::string shown(std::string_view text, std::size_t most) {
  std::string out;
  out.reserve(std::min(text.size(), most) + 4);
  for (std::size_t i = 0; i < text.size();) {
    const unsigned char c = static_cast<unsigned char>(text[i]);
    int extra = c < 0x80                 ? 0
                : c >= 0xC2 && c <= 0xDF ? 1
                : c >= 0xE0 && c <= 0xEF ? 2
                : c >= 0xF0 && c <= 0xF4 ? 3
                                         : -1;
    bool good = extra >= 0 && i + extra < text.size();
    for (int k = 1; good && k <= extra; ++k) {
      good = (static_cast<unsigned char>(text[i + k]) & 0xC0) == 0x80;
    }
    if (good && extra >= 2) {  // overlong forms, surrogates, beyond U+10FFFF
      const unsigned char d = static_cast<unsigned char>(text[i + 1]);
      good = !(c == 0xE0 && d < 0xA0) && !(c == 0xED && d > 0x9F) && !(c == 0xF0 && d < 0x90) &&
             !(c == 0xF4 && d > 0x8F);
    }
    // C1 controls drive terminals as C0 do.
    const bool c1 = good && c == 0xC2 && static_cast<unsigned char>(text[i + 1]) < 0xA0;
    const std::size_t take = good ? static_cast<std::size_t>(extra) + 1 : 1;
    if (out.size() + std::max<std::size_t>(take, 3) > most) return out + "…";
    if (!good || c1) {
      out += "\xEF\xBF\xBD";
    } else if (c < 0x20 || c == 0x7F) {
      out += ' ';
    } else {
      out.append(text, i, take);
    }
    i += take;
  }
  return out;
}

bool read_bar(std::string_view text, Bar& bar) {
  // `title:  50%|█████     | 3/6 [00:02<00:02,  1.21it/s]`, `title:  50% Completed | 3/6 [00:02…`.
  std::size_t percent = text.find("%|");
  if (percent == std::string_view::npos) percent = text.find("% Completed |");
  if (percent == std::string_view::npos || percent == 0 || !is_digit(text[percent - 1]))
    return false;
  const std::size_t slash_from = text.find("| ", percent + 2);
  if (slash_from == std::string_view::npos) return false;
  std::size_t at = slash_from + 2;
  const auto number = [&](std::int64_t& value) {
    std::size_t count = 0;
    for (value = 0; at < text.size() && is_digit(text[at]) && count < 12; ++at, ++count) {
      value = value * 10 + (text[at] - '0');
    }
    return count > 0;
  };
  while (at < text.size() && text[at] == ' ') ++at;
  if (!number(bar.done) || at >= text.size() || text[at] != '/') return false;
  ++at;
  if (!number(bar.total)) return false;
  if (text.substr(at).starts_with(" [")) {
    at += 2;
    double seconds = 0;
    std::int64_t part = 0;
    bool any = false;
    while (number(part)) {
      seconds = seconds * 60 + static_cast<double>(part);
      any = true;
      if (at < text.size() && text[at] == ':') ++at;
    }
    if (any) bar.elapsed_s = seconds;
  }
  std::size_t title = percent;
  while (title > 0 && (is_digit(text[title - 1]) || text[title - 1] == ' ')) --title;
  bar.title = text.substr(0, title);
  return true;
}

std::size_t glued_after_bar(std::string_view text) {
  for (std::size_t at = text.find("]"); at != std::string_view::npos; at = text.find(']', at + 1)) {
    if (at < 4 || at + 1 >= text.size()) continue;
    const std::string_view before = text.substr(at - 4, 4);
    const bool rate =
        before == "it/s" || before == "s/it" || before.ends_with("B/s") || before.ends_with("?it");
    if (rate && text.substr(0, at).find('%') != std::string_view::npos) return at + 1;
  }
  return std::string_view::npos;
}

}  // namespace warmgate::explain::internal
