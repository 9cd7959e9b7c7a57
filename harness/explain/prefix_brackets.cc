// Prefixes in brackets: `[2025-11-30 13:00:09 TP0] `, `[TRT-LLM] [RANK 1] [E] `, `[rank0]:[W1208 …]
// `.
#include "harness/explain/prefix_parts.h"
#include "harness/explain/stamps.h"
#include "harness/explain/text.h"

namespace warmgate::explain::internal {
namespace {

// `TP0`, `DP1 PP0 TP3 EP3`: words of capitals with a number.
bool rank_words(std::string_view text) {
  bool letters = false, number = false;
  for (const char c : text) {
    if (c == ' ') {
      if (!letters || !number) return false;
      letters = number = false;
    } else if ((c >= 'A' && c <= 'Z') || c == '_') {
      if (number) return false;
      letters = true;
    } else if (is_digit(c)) {
      if (!letters) return false;
      number = true;
    } else {
      return false;
    }
  }
  return letters && number;
}

void trt_brackets(std::string_view& text, Line& out) {
  // `[TRT-LLM] [RANK 1] [E] `, `[TRT-LLM] [E] [executor][RANK 1] `: level and rank in any order.
  for (int i = 0; i < 4 && text.starts_with('['); ++i) {
    const std::size_t close = text.substr(0, 40).find(']');
    if (close == std::string_view::npos) return;
    const std::string_view inside = text.substr(1, close - 1);
    const bool rank = inside.starts_with("RANK ");
    const Level level = level_of(inside);
    if (rank) {
      out.worker = inside;
    } else if (level != Level::kNone) {
      out.level = level;
    } else if (inside != "executor") {
      return;
    }
    text.remove_prefix(close + 1);
    drop_spaces(text);
  }
}

}  // namespace

bool strip_bracket_prefix(std::string_view& text, Line& out) {
  double seconds = 0;
  const std::string_view body = text.substr(1);
  if (body.empty()) return false;
  if (is_digit(body[0])) {
    if (const std::size_t length = slash_stamp(body, seconds); length > 0) {
      std::string_view rest = body.substr(length);
      if (!rest.starts_with("] ")) return false;
      rest.remove_prefix(2);
      out.inner_s = seconds;
      out.inner_from = Origin::kYear;
      out.clock = body.substr(11, 8);
      if (rest.starts_with("[TRT-LLM")) {
        const std::size_t close = rest.find(']');
        if (close == std::string_view::npos) return false;
        rest.remove_prefix(close + 1);
        drop_spaces(rest);
        out.form = Form::kTrt;
        trt_brackets(rest, out);
      }
      text = rest;
      return true;
    }
    std::size_t length = body.size() > 10 && body[10] == ' ' ? iso_stamp(body, seconds) : 0;
    const std::size_t clock_at = length > 0 ? 11 : 0;
    if (length == 0) length = clock_stamp(body, seconds);
    if (length == 0 || length >= body.size()) return false;
    const std::size_t close = body.substr(0, 80).find(']', length);
    if (close == std::string_view::npos) return false;
    const std::string_view label = body.substr(length, close - length);
    if (!label.empty() && (label[0] != ' ' || !rank_words(label.substr(1)))) return false;
    out.form = label.empty() ? Form::kSglang : Form::kSglangRank;
    if (!label.empty()) out.worker = label.substr(1);
    out.inner_s = seconds;
    out.inner_from = clock_at > 0 ? Origin::kYear : Origin::kMidnight;
    out.clock = body.substr(clock_at, 8);
    text = body.substr(close + 1);
    if (text.starts_with(' ')) text.remove_prefix(1);
    return true;
  }
  for (const auto& [mark, form] :
       {std::pair<std::string_view, Form>{"TensorRT-LLM][", Form::kTrtCpp},
        {"TM][", Form::kTurbomind}}) {
    if (!body.starts_with(mark)) continue;
    const std::size_t close = body.find(']', mark.size());
    if (close == std::string_view::npos) return false;
    out.level = level_of(body.substr(mark.size(), close - mark.size()));
    out.form = form;
    text = body.substr(close + 1);
    if (text.starts_with(' ')) text.remove_prefix(1);
    return true;
  }
  if (body.starts_with("TRT-LLM")) {  // without its time
    const std::size_t close = body.find(']');
    if (close == std::string_view::npos) return false;
    text = body.substr(close + 1);
    drop_spaces(text);
    out.form = Form::kTrt;
    trt_brackets(text, out);
    return true;
  }
  if (body.starts_with("rank")) {  // [rank0]:[W1208 08:30:14.0 file.cpp:1524] , [rank0]: Traceback
    const std::size_t close = body.substr(0, 16).find("]:");
    if (close == std::string_view::npos) return false;
    out.worker = body.substr(0, close);
    out.form = Form::kC10d;
    std::string_view rest = body.substr(close + 2);
    if (rest.starts_with(' ')) rest.remove_prefix(1);
    if (rest.starts_with('[') && rest.size() > 2) {
      const std::size_t length = glog_stamp(rest.substr(2), seconds);
      const std::size_t end = rest.substr(0, 160).find(']');
      if (length > 0 && end != std::string_view::npos) {
        out.level = level_of(rest.substr(1, 1));
        out.inner_s = seconds;
        out.inner_from = Origin::kDate;
        rest.remove_prefix(end + 1);
        if (rest.starts_with(' ')) rest.remove_prefix(1);
      }
    }
    text = rest;
    return true;
  }
  return false;
}

}  // namespace warmgate::explain::internal
