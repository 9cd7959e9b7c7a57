#include "reports/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "harness/trace/secrets.h"

namespace warmgate::reports {
namespace {

struct Decoded {
  char32_t code;
  std::size_t bytes;
  bool valid;
};

// One character at the head of `text`, which is not empty. Strict: no overlong forms, no
// surrogates, nothing above U+10FFFF.
Decoded decode(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return {0xfffd, 1, false};
  char32_t code = lead & (0xffu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {0xfffd, 1, false};
    code = (code << 6) | (byte(i) & 0x3fu);
  }
  constexpr std::array<char32_t, 5> kSmallest = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kSmallest[length] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) {
    return {0xfffd, 1, false};
  }
  return {code, length, true};
}

// Characters that change how a line is read although they show nothing.
bool is_unsafe(char32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x061c || c == 0x200e || c == 0x200f ||
         c == 0x2028 || c == 0x2029 || (c >= 0x202a && c <= 0x202e) ||
         (c >= 0x2066 && c <= 0x2069) || c == 0xfeff || (c >= 0xe0000 && c <= 0xe007f);
}

std::string escape(char32_t c) {
  if (c == '\n') return "\\n";
  if (c == '\r') return "\\r";
  if (c < 0x80) return fmt::format("\\x{:02x}", static_cast<unsigned>(c));
  if (c > 0xffff) return fmt::format("\\U{:08x}", static_cast<unsigned>(c));
  return fmt::format("\\u{:04x}", static_cast<unsigned>(c));
}

std::string ascii(char32_t c) {
  switch (c) {
    case 0x2026:
      return "...";
    case 0x00b1:
      return "+-";
    case 0x00d7:
      return "x";
    case 0x00b7:
    case 0x2022:
      return "-";
    case 0x2192:
      return "->";
    case 0x2013:
    case 0x2014:
    case 0x2500:
      return "-";
    case 0x2264:
      return "<=";
    case 0x2265:
      return ">=";
    case 0x2286:
      return "within";
    case 0x2018:
    case 0x2019:
      return "'";
    case 0x201c:
    case 0x201d:
      return "\"";
    case 0xfffd:
      return "?";
    default:
      return escape(c);
  }
}

bool is_wide(char32_t c) {
  return (c >= 0x1100 && c <= 0x115f) || (c >= 0x2e80 && c <= 0xa4cf) ||
         (c >= 0xac00 && c <= 0xd7a3) || (c >= 0xf900 && c <= 0xfaff) ||
         (c >= 0xfe30 && c <= 0xfe6f) || (c >= 0xff00 && c <= 0xff60) ||
         (c >= 0x1f300 && c <= 0x1faff) || (c >= 0x20000 && c <= 0x3fffd);
}

std::size_t columns_of(char32_t c) {
  const bool combining = (c >= 0x300 && c <= 0x36f) || (c >= 0x1ab0 && c <= 0x1aff) ||
                         (c >= 0x20d0 && c <= 0x20ff) || (c >= 0xfe00 && c <= 0xfe0f) ||
                         (c >= 0x200b && c <= 0x200d);
  return combining ? 0 : is_wide(c) ? 2 : 1;
}

// Length in bytes of the longest head of `text` that fits into `width` columns.
std::size_t fitting(std::string_view text, std::size_t width) {
  std::size_t bytes = 0, used = 0;
  while (bytes < text.size()) {
    const Decoded d = decode(text.substr(bytes));
    used += columns_of(d.code);
    if (used > width) break;
    bytes += d.bytes;
  }
  return bytes;
}

}  // namespace

std::string valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Decoded d = decode(text);
    if (d.valid)
      out.append(text.substr(0, d.bytes));
    else
      out += "\xef\xbf\xbd";
    text.remove_prefix(d.bytes);
  }
  return out;
}

std::string printable(std::string_view text, Charset charset) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Decoded d = decode(text);
    if (d.code == '\t')
      out += ' ';
    else if (is_unsafe(d.code))
      out += escape(d.code);
    else if (d.code < 0x80)
      out += static_cast<char>(d.code);
    else if (charset == Charset::kAscii)
      out += ascii(d.code);
    else if (d.valid)
      out.append(text.substr(0, d.bytes));
    else
      out += "\xef\xbf\xbd";
    text.remove_prefix(d.bytes);
  }
  return out;
}

namespace {

// `wide` writes what is beyond U+FFFF.
template <typename F>
std::string unsafe_escaped(std::string_view text, F&& wide) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Decoded d = decode(text);
    // Line ends and blanks are the document's own; within its texts they are escaped already.
    if (d.code < 0x7f || !d.valid || !is_unsafe(d.code))
      out.append(text.substr(0, d.bytes));
    else if (d.code > 0xffff)
      out += wide(static_cast<unsigned>(d.code));
    else
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(d.code));
    text.remove_prefix(d.bytes);
  }
  return out;
}

}  // namespace

std::string json_shown_safely(std::string_view json) {
  return unsafe_escaped(json, [](unsigned code) {
    return fmt::format("\\u{:04x}\\u{:04x}", 0xd800 + ((code - 0x10000) >> 10),
                       0xdc00 + ((code - 0x10000) & 0x3ff));
  });
}

std::string yaml_shown_safely(std::string_view yaml) {
  return unsafe_escaped(yaml, [](unsigned code) { return fmt::format("\\U{:08x}", code); });
}

std::size_t columns(std::string_view text) {
  std::size_t total = 0;
  while (!text.empty()) {
    const Decoded d = decode(text);
    total += columns_of(d.code);
    text.remove_prefix(d.bytes);
  }
  return total;
}

std::string shorten(std::string_view text, std::size_t width, Charset charset) {
  if (columns(text) <= width) return std::string(text);
  const std::string_view mark = charset == Charset::kAscii ? "..." : "…";
  const std::size_t taken = columns(mark);
  if (width < taken) return std::string(text.substr(0, fitting(text, width)));
  return std::string(text.substr(0, fitting(text, width - taken))) + std::string(mark);
}

std::vector<std::string> wrap(std::string_view text, std::size_t width) {
  width = std::max<std::size_t>(width, 8);
  std::vector<std::string> lines;
  std::string line;
  std::size_t used = 0;
  while (!text.empty()) {
    const std::size_t blanks = std::min(text.find_first_not_of(' '), text.size());
    const std::size_t end = std::min(text.find(' ', blanks), text.size());
    std::string_view gap = text.substr(0, blanks), word = text.substr(blanks, end - blanks);
    text.remove_prefix(end);
    const std::size_t room = columns(word);
    if (used > 0 && used + gap.size() + room > width) {
      lines.push_back(std::exchange(line, ""));
      used = 0;
      gap = {};
    }
    if (used == 0) gap = {};
    line.append(gap);
    used += gap.size();
    while (used + columns(word) > width) {  // a word longer than a line
      std::size_t bytes = fitting(word, width - used);
      // Keys and paths are read in parts.
      const std::size_t mark = word.substr(0, bytes).find_last_of(",/;");
      if (mark != std::string_view::npos && mark + 1 > bytes / 3) bytes = mark + 1;
      if (bytes == 0) bytes = decode(word).bytes;
      lines.push_back(line + std::string(word.substr(0, bytes)));
      word.remove_prefix(bytes);
      line.clear();
      used = 0;
    }
    line.append(word);
    used += columns(word);
  }
  if (!line.empty() || lines.empty()) lines.push_back(line);
  return lines;
}

std::string without_ci_commands(std::string line) {
  const std::size_t first = line.find_first_not_of(" \t");
  if (first != std::string::npos && line.compare(first, 2, "::") == 0) line.insert(first, "\\");
  // The older forms are found anywhere in a line.
  for (const std::string_view command : {"##[", "##vso[", "##teamcity["}) {
    for (std::size_t at = line.find(command); at != std::string::npos;
         at = line.find(command, at + 3)) {
      line.insert(at + 1, " ");
    }
  }
  return line;
}

std::string mask(std::string_view text, const std::vector<std::string>& secrets) {
  const auto too_short = [](const std::string& secret) { return secret.size() < 4; };
  if (std::none_of(secrets.begin(), secrets.end(), too_short))
    return trace::mask_secrets(text, secrets);
  std::vector<std::string> long_enough = secrets;
  std::erase_if(long_enough, too_short);
  return trace::mask_secrets(text, long_enough);
}

}  // namespace warmgate::reports
