#include "harness/target/spans/python_stack.h"

#include <algorithm>
#include <charconv>

namespace warmgate::target {
namespace {

// `  File "/opt/x/worker.py", line 31, in load`; false if it is no such line.
bool read_frame(std::string_view line, StackFrame& out) {
  const std::size_t first = line.find_first_not_of(' ');
  if (first == std::string_view::npos || !line.substr(first).starts_with("File \"")) return false;
  line.remove_prefix(first + 6);
  constexpr std::string_view kLine = "\", line ", kIn = ", in ";
  const std::size_t quote = line.find(kLine);
  if (quote == std::string_view::npos) return false;
  const std::string_view path = line.substr(0, quote);
  line.remove_prefix(quote + kLine.size());
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), out.line);
  if (error != std::errc()) return false;
  line.remove_prefix(static_cast<std::size_t>(end - line.data()));
  out.file = path.substr(path.rfind('/') + 1);
  out.function = line.starts_with(kIn) ? line.substr(kIn.size()) : std::string_view();
  return true;
}

}  // namespace

std::vector<StackFrame> innermost_frames(std::string_view text) {
  std::vector<StackFrame> out;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    StackFrame frame;
    if (line.starts_with("Traceback (most recent call last)")) {
      out.clear();
    } else if (read_frame(line, frame)) {
      out.push_back(std::move(frame));
      if (out.size() > kMostFramesShown) out.erase(out.begin());
    }
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  std::reverse(out.begin(), out.end());
  return out;
}

}  // namespace warmgate::target
