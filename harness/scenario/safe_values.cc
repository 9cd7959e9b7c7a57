#include "harness/scenario/safe_values.h"

#include <algorithm>
#include <cstdlib>

namespace warmgate::scenario {
namespace {

namespace fs = std::filesystem;

bool letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool made_of(std::string_view text, std::string_view more) {
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return letter_or_digit(c) || more.find(c) != std::string_view::npos;
  });
}

// Without a slash at the end, and without "." and "..".
fs::path plain(const fs::path& path) {
  fs::path out = path.lexically_normal();
  return out.has_filename() ? out : out.parent_path();
}

bool holds(const fs::path& outer, const fs::path& inner) {
  const auto [left, right] = std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end());
  return left == outer.end();
}

std::string why_not(const fs::path& folder) {
  if (folder == folder.root_path()) return "the root";
  // Nothing at all below these is anybody's to give away.
  for (const char* whole : {"/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/proc",
                            "/sbin", "/sys", "/usr/bin", "/usr/lib", "/usr/lib64", "/usr/sbin"}) {
    if (holds(whole, folder)) return "a system folder";
  }
  for (const char* itself :
       {"/home", "/media", "/mnt", "/opt", "/run", "/srv", "/tmp", "/usr", "/usr/include",
        "/usr/local", "/usr/share", "/var", "/var/cache", "/var/lib", "/var/log", "/var/tmp"}) {
    if (folder == itself) return "a system folder";
  }
  const char* home = std::getenv("HOME");
  if (folder == "/root" || (folder.parent_path() == "/home" && folder.has_filename()) ||
      (home != nullptr && *home == '/' && folder == plain(home))) {
    return "a home folder";
  }
  if (home != nullptr && *home == '/' && holds(folder, plain(home)))
    return "what holds the home folder";
  return "";
}

}  // namespace

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

bool is_host(std::string_view text) {
  if (text.empty() || text.size() > 253) return false;
  if (text.find(':') == std::string_view::npos)
    return letter_or_digit(text.front()) && made_of(text, ".-_");
  const std::size_t zone = text.find('%');
  const std::string_view address = text.substr(0, zone);
  const bool six = address.find_first_not_of("0123456789abcdefABCDEF:.") == address.npos &&
                   std::count(address.begin(), address.end(), ':') >= 2;
  return six &&
         (zone == text.npos || (zone + 1 < text.size() && made_of(text.substr(zone + 1), ".-_")));
}

bool is_distribution(std::string_view text) {
  return !text.empty() && letter_or_digit(text.front()) && made_of(text, "._-");
}

std::string why_no_store(const fs::path& folder) {
  const fs::path written = plain(folder);
  if (std::string why = why_not(written); !why.empty()) return why;
  std::error_code error;
  const fs::path real = fs::weakly_canonical(written, error);
  return error ? "" : why_not(plain(real));
}

}  // namespace warmgate::scenario
