#include "harness/explain/tracebacks.h"

#include <algorithm>

#include "harness/explain/text.h"

namespace warmgate::explain::internal {
namespace {

bool upper(char c) { return c >= 'A' && c <= 'Z'; }
bool name_char(char c) {
  return upper(c) || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

// Indentation, and the `|` and `+` of exception groups.
std::string_view unindented(std::string_view text) {
  const std::size_t at = text.find_first_not_of(" \t|+");
  return at == std::string_view::npos ? std::string_view() : text.substr(at);
}

// `File "…/core.py", line 927, in run_engine_core`
bool read_frame(std::string_view text, Frame& out) {
  if (!text.starts_with("File \"")) return false;
  const std::size_t quote = text.find('"', 6);
  if (quote == std::string_view::npos) return false;
  const std::size_t in = text.find(" in ", quote);
  if (in == std::string_view::npos) return false;
  out.file = shown(text.substr(6, quote - 6), 300);
  out.function = shown(text.substr(in + 4), 120);
  return true;
}

}  // namespace

bool read_exception(std::string_view line, Exception& out) {
  std::size_t end = 0;
  while (end < line.size() && end < 120 && name_char(line[end])) ++end;
  if (end == 0 || (line[0] >= '0' && line[0] <= '9')) return false;
  const std::string_view type = line.substr(0, end);
  const bool bare = end == line.size();
  if (!bare && line[end] != ':') return false;
  if (!bare && end + 1 < line.size() && line[end + 1] != ' ') return false;
  const std::size_t dot = type.rfind('.');
  const std::string_view last = dot == std::string_view::npos ? type : type.substr(dot + 1);
  if (last.empty()) return false;
  const bool plausible =
      (upper(last[0]) && last.size() > 3) || last == "error" || last == "timeout";
  if (!plausible ||
      (bare && last.find_first_of("abcdefghijklmnopqrstuvwxyz") == std::string_view::npos)) {
    return false;
  }
  out.type = type;
  out.message = bare ? std::string_view() : line.substr(std::min(line.size(), end + 2));
  return true;
}

Tracebacks::Open& Tracebacks::open(std::uint64_t key, std::int64_t line) {
  const auto it = open_.find(key);
  if (it != open_.end()) return it->second;
  if (open_.size() >= kMostOpen) {
    auto oldest = std::min_element(open_.begin(), open_.end(), [](const auto& a, const auto& b) {
      return a.second.line < b.second.line;
    });
    open_.erase(oldest);
  }
  Open& fresh = open_[key];
  fresh.line = line;
  return fresh;
}

Tracebacks::Result Tracebacks::read(std::string_view message, std::uint64_t key,
                                    std::int64_t line) {
  Result result;
  const bool begins = message.ends_with("Traceback (most recent call last):");
  const bool stack = !begins && message.ends_with("(most recent call first):");
  if (begins || stack) {
    Open& trace = open(key, line);
    // Two ranks that print the same without a prefix begin twice before the first frame.
    if (trace.ended || stack) trace.frames.clear();
    result.chained = trace.chained;
    trace.began = true;
    trace.ended = false;
    trace.newest_first = stack;
    trace.line = line;
    result.part = Part::kBegin;
    return result;
  }
  if (open_.empty()) return result;
  const auto it = open_.find(key);
  if (it == open_.end()) return result;
  Open& trace = it->second;
  if (line - trace.line > kForget) {
    open_.erase(it);
    return result;
  }
  if (trace.ended && !trace.began) {
    const bool chain = message.starts_with("The above exception was the direct cause of") ||
                       message.starts_with("During handling of the above exception");
    if (!chain) return result;
    trace.chained = true;
    trace.line = line;
    result.part = Part::kChain;
    return result;
  }
  const std::string_view bare = unindented(message);
  Frame frame;
  if (read_frame(bare, frame)) {
    if (trace.frames.size() >= kMostFrames) {
      // Recursion: the innermost frames matter; in a newest-first stack these are already there.
      if (!trace.newest_first) trace.frames.erase(trace.frames.begin());
    }
    if (trace.frames.size() < kMostFrames) trace.frames.push_back(std::move(frame));
    trace.line = line;
    result.part = Part::kFrame;
    if (trace.newest_first) {
      result.frames = &trace.frames;
      result.newest_first = true;
    }
    return result;
  }
  const bool indented = !message.empty() && (message[0] == ' ' || message[0] == '\t');
  if (indented || bare.empty()) {
    if (!trace.frames.empty() && trace.frames.back().code.empty()) {
      trace.frames.back().code = shown(bare, 200);
    }
    result.part = Part::kFrame;
    return result;
  }
  if (trace.newest_first) {  // such a stack has no exception line
    open_.erase(it);
    return result;
  }
  if (!read_exception(bare, result.exception)) return result;
  trace.began = false;
  trace.ended = true;
  trace.line = line;
  result.part = Part::kEnd;
  result.chained = trace.chained;
  trace.chained = false;
  result.frames = &trace.frames;
  return result;
}

Innermost innermost(const std::vector<Frame>& frames, bool newest_first,
                    const std::vector<std::string>& ignore_files) {
  std::vector<Frame> inner_first(frames);
  if (!newest_first) std::reverse(inner_first.begin(), inner_first.end());
  const auto ignored = [&](const Frame& frame) {
    return std::any_of(ignore_files.begin(), ignore_files.end(), [&](const std::string& part) {
      return frame.file.find(part) != std::string::npos;
    });
  };
  Innermost out;
  for (std::size_t i = 0; i < inner_first.size(); ++i) {
    const Frame& frame = inner_first[i];
    if (ignored(frame)) continue;
    const std::size_t slash = frame.file.rfind('/');
    const std::string file = slash == std::string::npos ? frame.file : frame.file.substr(slash + 1);
    // `__exit__` is called by a `with`. If this frame's line is a call instead, the frame of the
    // callee is missing: a log that somebody shortened. What it calls is what failed.
    if (i > 0 && !newest_first) {
      const std::string& callee = inner_first[i - 1].function;
      const std::string& code = frame.code;
      if ((callee == "__exit__" || callee == "__enter__") && code.starts_with("self.") &&
          code.find('(') != std::string::npos) {
        const std::string name = code.substr(5, code.find('(') - 5);
        if (name.find_first_of(". =") == std::string::npos) {
          out.functions.push_back(name);
          if (out.frames.size() < 3) out.frames.emplace_back(name, file);
        }
      }
    }
    out.functions.push_back(frame.function);
    if (out.frames.size() < 3) out.frames.emplace_back(frame.function, file);
  }
  if (out.frames.empty() && !inner_first.empty()) {  // libraries all the way
    const Frame& frame = inner_first.front();
    const std::size_t slash = frame.file.rfind('/');
    out.functions.push_back(frame.function);
    out.frames.emplace_back(frame.function,
                            slash == std::string::npos ? frame.file : frame.file.substr(slash + 1));
  }
  if (!out.frames.empty()) std::tie(out.function, out.file) = out.frames.front();
  return out;
}

}  // namespace warmgate::explain::internal
