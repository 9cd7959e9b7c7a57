// What engines themselves put in front of a message: process, rank, time, level, place in the code.
#include "harness/explain/prefix_parts.h"
#include "harness/explain/stamps.h"
#include "harness/explain/text.h"

namespace warmgate::explain::internal {
namespace {

// `(Worker_TP0 pid=31) `, `(VllmWorker rank=1 pid=42) `, `(RayWorkerWrapper pid=3, ip=10.0.0.2) `.
bool process_prefix(std::string_view& text, Line& out) {
  const std::size_t close = text.substr(0, 200).find(')');
  if (close == std::string_view::npos) return false;
  std::string_view inside = text.substr(1, close - 1);
  const std::size_t pid = inside.find("pid=");
  if (pid == std::string_view::npos || pid == 0 || inside[pid - 1] != ' ') return false;
  std::int64_t number = 0;
  std::size_t at = pid + 4;
  for (; at < inside.size() && at < pid + 14 && is_digit(inside[at]); ++at) {
    number = number * 10 + (inside[at] - '0');
  }
  if (at == pid + 4) return false;
  std::string_view label = inside.substr(0, pid - 1);
  // `VllmWorker rank=1` and `VllmWorker TP0`: what tells the workers apart is the second word.
  if (const std::size_t space = label.rfind(' '); space != std::string_view::npos) {
    label.remove_prefix(space + 1);
  }
  out.worker = label;
  out.pid = number;
  ++out.depth;
  text.remove_prefix(close + 1);
  if (text.starts_with(' ')) text.remove_prefix(1);
  // `[Stage-0]` of vLLM-Omni
  if (text.starts_with("[Stage-")) {
    const std::size_t end = text.find(']');
    if (end != std::string_view::npos) text.remove_prefix(end + 1), drop_spaces(text);
  }
  return true;
}

// `[core.py:112] ` or `core.py:112] `.
void code_place(std::string_view& text, Line& out) {
  std::string_view rest = text;
  if (rest.starts_with('[')) rest.remove_prefix(1);
  const std::size_t close = rest.substr(0, 120).find(']');
  if (close == std::string_view::npos) return;
  const std::string_view place = rest.substr(0, close);
  const std::size_t colon = place.rfind(':');
  if (colon == std::string_view::npos || place.find(' ') != std::string_view::npos ||
      colon + 1 >= place.size() || !is_digit(place[colon + 1])) {
    return;
  }
  out.tag = place;
  text = rest.substr(close + 1);
  if (text.starts_with(' ')) text.remove_prefix(1);
}

// `INFO 07-02 09:00:01 [core.py:112] …`, uvicorn's `INFO:     …`, `INFO [ main] …`.
bool level_first(std::string_view& text, Line& out) {
  const std::string_view word = capitals(text);
  const Level level = level_of(word);
  if (level == Level::kNone || word.size() < 4 || word.size() >= text.size()) return false;
  std::string_view rest = text.substr(word.size());
  if (rest.starts_with(": ") || rest.starts_with(":\t")) {
    std::string_view after = rest.substr(1);
    const std::size_t pad = after.find_first_not_of(' ');
    // `ERROR: x` of anybody; uvicorn pads to ten columns.
    if (pad == std::string_view::npos || word.size() + 1 + pad < 9) return false;
    out.form = out.form == Form::kNone ? Form::kUvicorn : out.form;
    out.level = level;
    text = after.substr(pad);
    return true;
  }
  if (!rest.starts_with(' ')) return false;
  drop_spaces(rest);
  double seconds = 0;
  if (const std::size_t length = month_day_stamp(rest, seconds); length > 0) {
    out.form = Form::kVllm;
    out.level = level;
    out.inner_s = seconds;
    out.inner_from = Origin::kDate;
    out.clock = rest.substr(6, 8);
    text = rest.substr(length);
    drop_spaces(text);
    code_place(text, out);
    return true;
  }
  // llama.cpp of 2024: `INFO [                    main] model loaded | tid="…" timestamp=…`.
  if (rest.starts_with("[ ")) {
    const std::size_t close = rest.substr(0, 60).find("] ");
    const std::size_t bar = rest.find(" | tid=");
    if (close != std::string_view::npos && bar != std::string_view::npos && bar > close) {
      out.level = level;
      text = rest.substr(close + 2, bar - close - 2);
      return true;
    }
  }
  return false;
}

// `2026-07-02 09:00:58,911 - INFO - autotuner.py:641 - flashinfer.jit: …`, lmdeploy's likewise.
bool python_logging(std::string_view text, std::size_t length, double seconds, Line& out,
                    std::string_view& rest_out) {
  std::string_view rest = text.substr(length);
  if (!rest.starts_with(" - ")) return false;
  rest.remove_prefix(3);
  Form form = Form::kPython;
  Level level = Level::kNone;
  for (int i = 0; i < 4; ++i) {
    const std::size_t dash = rest.substr(0, 100).find(" - ");
    if (dash == std::string_view::npos) break;
    const std::string_view part = rest.substr(0, dash);
    if (part.find(' ') != std::string_view::npos) break;
    if (part == "lmdeploy") form = Form::kLmdeploy;
    if (const Level found = level_of(part); found != Level::kNone) level = found;
    rest.remove_prefix(dash + 3);
  }
  if (level == Level::kNone) return false;
  out.form = out.form == Form::kNone || form == Form::kLmdeploy ? form : out.form;
  out.level = level;
  out.inner_s = seconds;
  out.inner_from = Origin::kYear;
  out.clock = text.substr(11, 8);
  rest_out = rest;
  return true;
}

// `shard-manager: text_generation_launcher: `, `warmup{…}:warmup: …::client: backends/x.rs:45: `.
void rust_targets(std::string_view& text) {
  bool target = false;
  for (int i = 0; i < 4; ++i) {
    std::size_t at = 0, braces = 0;
    for (; at < text.size(); ++at) {
      const char c = text[at];
      if (c == '{') ++braces;
      if (c == '}' && braces > 0) --braces;
      if (braces == 0 && c == ' ') return;
      if (braces == 0 && c == ':' && at + 1 < text.size() && text[at + 1] == ' ') break;
    }
    if (at == 0 || at >= text.size()) return;
    const std::string_view part = text.substr(0, at);
    const bool place = part.find(".rs:") != std::string_view::npos;
    if (target && !place) return;
    // The target is a module of Rust; what stands before it are spans.
    target = target || place || part.find('{') == std::string_view::npos;
    if (part == "download" || part == "shard-manager") target = false;
    text.remove_prefix(at + 2);
  }
}

// TGI, and whoever else logs with Rust's tracing.
bool rust_logging(std::string_view text, std::size_t length, double seconds, Line& out,
                  std::string_view& rest_out) {
  std::string_view rest = text.substr(length);
  if (!rest.starts_with(' ')) return false;
  drop_spaces(rest);
  const std::string_view word = capitals(rest);
  if (word.size() < 4 || level_of(word) == Level::kNone ||
      !rest.substr(word.size()).starts_with(' ')) {
    return false;
  }
  rest.remove_prefix(word.size() + 1);
  out.level = level_of(word);
  out.form = Form::kTgi;
  out.inner_s = seconds;
  out.inner_from = Origin::kYear;
  out.clock = text.substr(11, 8);
  rust_targets(rest);
  if (const std::size_t rank = rest.rfind(" rank=");
      rank != std::string_view::npos && rank + 6 < rest.size() && rest.size() - rank < 12) {
    out.worker = rest.substr(rank + 1);
  } else if (rest.starts_with("rank=")) {
    out.worker = rest.substr(0, rest.find(' '));
  }
  rest_out = rest;
  return true;
}

bool digits_first(std::string_view& text, Line& out) {
  double seconds = 0;
  if (const std::size_t length = iso_stamp(text, seconds); length > 0 && length < text.size()) {
    std::string_view rest;
    if (python_logging(text, length, seconds, out, rest) ||
        (text[10] == 'T' && rust_logging(text, length, seconds, out, rest))) {
      text = rest;
      return true;
    }
    return false;
  }
  const std::size_t length = since_start_stamp(text, seconds);
  if (length == 0 || length + 3 > text.size() || text[length] != ' ' || text[length + 2] != ' ') {
    return false;
  }
  const Level level = level_of(text.substr(length + 1, 1));
  if (level == Level::kNone) return false;
  out.form = Form::kLlama;
  out.level = level;
  out.inner_s = seconds;
  out.inner_from = Origin::kStart;
  text.remove_prefix(length + 3);
  return true;
}

// `I0102 03:04:05.123456 1234 file.cc:12] …`.
bool glog_first(std::string_view& text, Line& out) {
  double seconds = 0;
  if (level_of(text.substr(0, 1)) == Level::kNone || text.size() < 16 || !is_digit(text[1]))
    return false;
  const std::size_t length = glog_stamp(text.substr(1), seconds);
  if (length == 0) return false;
  out.form = Form::kGlog;
  out.level = level_of(text.substr(0, 1));
  out.inner_s = seconds;
  out.inner_from = Origin::kDate;
  text.remove_prefix(1 + length);
  const std::size_t close = text.substr(0, 100).find("] ");
  if (close != std::string_view::npos) text.remove_prefix(close + 2);
  drop_spaces(text);
  return true;
}

}  // namespace

bool strip_prefix(std::string_view& text, Line& out) {
  if (text.empty()) return false;
  const char first = text[0];
  if (first == '(') return process_prefix(text, out);
  if (first == '[') return strip_bracket_prefix(text, out);
  if (is_digit(first)) return digits_first(text, out);
  if (first >= 'A' && first <= 'Z') return level_first(text, out) || glog_first(text, out);
  return false;
}

}  // namespace warmgate::explain::internal
