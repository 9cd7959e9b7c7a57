#include "harness/verdict/mask.h"

#include <cctype>

namespace warmgate::verdict {
namespace {

bool digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool hex(char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; }
bool word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool path_char(char c) {
  return word(c) || c == '/' || c == '.' || c == '-' || c == '+' || c == '@';
}

}  // namespace

std::string_view last_part(std::string_view path) {
  const std::size_t slash = path.find_last_of('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::string mask(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const bool starts = i == 0 || !word(text[i - 1]);
    if (starts && text[i] == '/' && i + 1 < text.size() && word(text[i + 1])) {
      std::size_t end = i;
      while (end < text.size() && path_char(text[end])) ++end;
      // "a/b" of prose is no path; two slashes make one.
      const std::string_view path = text.substr(i, end - i);
      if (path.find('/', 1) != std::string_view::npos) {
        out += mask(last_part(path));
        i = end;
        continue;
      }
    }
    if (starts && text[i] == '0' && i + 2 < text.size() && (text[i + 1] | 0x20) == 'x' &&
        hex(text[i + 2])) {
      std::size_t end = i + 2;
      while (end < text.size() && hex(text[end])) ++end;
      out += "0x#";
      i = end;
      continue;
    }
    if (starts && digit(text[i])) {
      std::size_t end = i;
      while (end < text.size() &&
             (digit(text[end]) || ((text[end] == '.' || text[end] == ',') &&
                                   end + 1 < text.size() && digit(text[end + 1]))))
        ++end;
      if (end == text.size() || !word(text[end])) {
        out += '#';
        i = end;
        continue;
      }
      while (end < text.size() && word(text[end])) ++end;
      out += text.substr(i, end - i);
      i = end;
      continue;
    }
    out += text[i++];
  }
  return out;
}

}  // namespace warmgate::verdict
