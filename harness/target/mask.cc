#include "harness/target/mask.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "harness/trace/wire.h"

namespace warmgate::target {
namespace {

using Ranges = std::vector<std::pair<std::size_t, std::size_t>>;  // [begin, end), merged, sorted

Ranges secret_ranges(std::string_view text, const std::vector<std::string>& secrets) {
  Ranges found;
  for (const std::string& secret : secrets) {
    if (secret.empty()) continue;
    for (std::size_t at = text.find(secret); at != std::string_view::npos;
         at = text.find(secret, at + 1)) {
      found.emplace_back(at, at + secret.size());
    }
  }
  std::sort(found.begin(), found.end());
  Ranges merged;
  for (const auto& range : found) {
    if (!merged.empty() && range.first < merged.back().second) {
      merged.back().second = std::max(merged.back().second, range.second);
    } else {
      merged.push_back(range);
    }
  }
  return merged;
}

// The password of scheme://user:password@host, "" if there is none.
std::string_view url_password(std::string_view value) {
  const std::size_t scheme = value.find("://");
  if (scheme == std::string_view::npos) return {};
  const std::size_t begin = scheme + 3;
  const std::size_t end = value.find_first_of("/?# ", begin);
  const std::string_view authority = value.substr(begin, end == value.npos ? end : end - begin);
  const std::size_t at = authority.rfind('@');
  const std::size_t colon = authority.find(':');
  if (at == std::string_view::npos || colon == std::string_view::npos || colon > at) return {};
  return authority.substr(colon + 1, at - colon - 1);
}

}  // namespace

bool is_secret_name(std::string_view name) {
  std::string upper;
  for (const char c : name) {
    upper += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  for (const std::string_view word : {"SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL",
                                      "APIKEY", "PRIVATE_KEY", "AUTHORIZATION"}) {
    if (upper.find(word) != std::string::npos) return true;
  }
  // Short words only as words of their own: TOKENIZERS_PARALLELISM and KEYMAP hold no secrets, and
  // in the plural they count or list (MAX_NUM_BATCHED_TOKENS).
  std::size_t words = 0;
  bool secret = false;
  std::string_view last;
  for (std::size_t at = 0; at <= upper.size(); ++words) {
    const std::size_t end = std::min(upper.find_first_of("_-.", at), upper.size());
    last = std::string_view(upper).substr(at, end - at);
    for (const std::string_view word : {"TOKEN", "KEY", "PASS", "PAT", "AUTH"})
      secret |= last == word;
    // PWD alone is the shell's folder.
    secret |= last == "PWD" && (words > 0 || end < upper.size());
    secret |= last.size() > 5 && (last.ends_with("TOKEN") || last.ends_with("KEY"));
    at = end + 1;
  }
  // Where the secret lies, not what it is.
  return secret && last != "PATH" && last != "FILE" && last != "DIR" && last != "HOME";
}

namespace {

// Masking a number by value would eat it wherever a log counts something.
bool is_number(std::string_view value) {
  return value.size() < 16 && value.find_first_not_of("0123456789.") == std::string_view::npos;
}

}  // namespace

std::vector<std::string> collect_secrets(const char* const* environ) {
  std::vector<std::string> out;
  for (; environ != nullptr && *environ != nullptr; ++environ) {
    const std::string_view entry = *environ;
    const std::size_t equal = entry.find('=');
    if (equal == std::string_view::npos) continue;
    const std::string_view value = entry.substr(equal + 1);
    if (is_secret_name(entry.substr(0, equal)) && value.size() >= kMinSecretBytes &&
        !is_number(value)) {
      out.emplace_back(value);
    }
    const std::string_view password = url_password(value);
    if (password.size() >= kMinSecretBytes) out.emplace_back(password);
  }
  std::sort(out.begin(), out.end(), [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() > b.size() : a < b;
  });
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::string mask(std::string_view text, const std::vector<std::string>& secrets) {
  return mask_part(text, 0, text.size(), secrets);
}

std::string mask_part(std::string_view text, std::size_t begin, std::size_t end,
                      const std::vector<std::string>& secrets) {
  end = std::min(end, text.size());
  begin = std::min(begin, end);
  std::string out;
  std::size_t at = begin;
  for (const auto& [from, to] : secret_ranges(text, secrets)) {
    if (to <= at) continue;
    if (from >= end) break;
    if (from > at) out += text.substr(at, from - at);
    out += kMask;
    at = to;
  }
  if (at < end) out += text.substr(at, end - at);
  return out;
}

SecretSpotter::SecretSpotter(const std::vector<std::string>& secrets) {
  for (const std::string& secret : secrets) {
    if (secret.empty()) continue;
    needles_.push_back(secret);
    std::string quoted;
    trace::append_json_string(quoted, secret);
    const std::string escaped = quoted.substr(1, quoted.size() - 2);
    if (escaped != secret) needles_.push_back(escaped);
  }
  for (const std::string& needle : needles_) longest_ = std::max(longest_, needle.size());
}

void SecretSpotter::feed(std::string_view bytes) {
  if (seen_ || needles_.empty()) return;
  const auto search = [&](std::string_view text) {
    for (const std::string& needle : needles_) {
      if (text.find(needle) != std::string_view::npos) return true;
    }
    return false;
  };
  // The border first: what was left over, and as much of the new piece as can complete a secret.
  carry_ += bytes.substr(0, longest_);
  seen_ = search(carry_) || search(bytes);
  if (bytes.size() >= longest_) carry_ = bytes.substr(bytes.size() - longest_);
  if (carry_.size() > 2 * longest_) carry_.erase(0, carry_.size() - longest_);
}

}  // namespace warmgate::target
