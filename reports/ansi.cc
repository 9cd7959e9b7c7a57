#include "reports/ansi.h"

namespace warmgate::reports {

std::string without_ansi(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\x1b' || i + 1 >= text.size()) {
      out += text[i];
      continue;
    }
    if (text[i + 1] == '[') {
      std::size_t end = i + 2;
      while (end < text.size() && text[end] >= 0x20 && text[end] <= 0x3f) ++end;
      if (end < text.size() && text[end] >= 0x40 && text[end] <= 0x7e) {
        i = end;
        continue;
      }
    } else if (text[i + 1] == ']') {
      // A title is short; without its end nothing is swallowed.
      const std::string_view near = text.substr(i, 256);
      const std::size_t end = near.find('\a');
      if (end != std::string_view::npos) {
        i += end;
        continue;
      }
    }
    out += text[i];
  }
  return out;
}

}  // namespace warmgate::reports
