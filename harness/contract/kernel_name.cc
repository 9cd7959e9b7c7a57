#include "harness/contract/kernel_name.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace warmgate::contract {
namespace {

constexpr std::size_t kLongest = 80;

std::string shortened(std::string text) {
  if (text.size() > kLongest) text = text.substr(0, kLongest - 3) + "...";
  return text;
}

// What stands between brackets of these kinds is left out; "(anonymous namespace)" is a name.
std::string without_brackets(std::string_view text) {
  constexpr std::string_view kUnnamed = "(anonymous namespace)";
  std::string out;
  int depth = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (depth == 0 && text.substr(at, kUnnamed.size()) == kUnnamed) {
      out += "{anonymous}";
      at += kUnnamed.size() - 1;
      continue;
    }
    const char c = text[at];
    if (c == '<' || c == '(') ++depth;
    if (depth == 0) out += c;
    if ((c == '>' || c == ')') && depth > 0) --depth;
    if (c == ')' && depth == 0) break;  // the parameters; what follows qualifies the function
  }
  return out;
}

}  // namespace

std::string kernel_name(std::string_view symbol) {
  if (symbol.substr(0, 2) != "_Z") return shortened(std::string(symbol));
  int status = -1;
  const std::unique_ptr<char, decltype(&std::free)> plain(
      abi::__cxa_demangle(std::string(symbol).c_str(), nullptr, nullptr, &status), &std::free);
  if (status != 0 || plain == nullptr) return shortened(std::string(symbol));
  std::string name = without_brackets(plain.get());
  const std::size_t blank = name.rfind(' ');  // of templates the return type is told
  if (blank != std::string::npos) name.erase(0, blank + 1);
  return name.empty() ? shortened(std::string(symbol)) : shortened(std::move(name));
}

}  // namespace warmgate::contract
