#include "harness/trace/secrets.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "harness/trace/wire.h"

namespace warmgate::trace {
namespace {

std::string upper_of(std::string_view text) {
  std::string out;
  for (const char c : text) out += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return out;
}

// Masking a number by value would eat it wherever a log counts something.
bool is_number(std::string_view value) {
  return value.size() < 16 && value.find_first_not_of("0123456789.") == std::string_view::npos;
}

// Shorter than this and known by its name alone, a value is masked beside its name only.
constexpr std::size_t kLeastBytes = 4;

bool word_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// "dummy", "EMPTY", "Test": one word of one case. So short, such a value is more often said of
// something else than not.
bool plain_word(std::string_view value) {
  const auto all = [](std::string_view part, int (*is)(int)) {
    return std::all_of(part.begin(), part.end(),
                       [&](char c) { return is(static_cast<unsigned char>(c)) != 0; });
  };
  return all(value, std::islower) || all(value, std::isupper) ||
         (!value.empty() && all(value.substr(0, 1), std::isupper) &&
          all(value.substr(1), std::islower));
}

// Sorted, merged where they overlap; those that only touch stay apart.
std::vector<Stretch> merged(std::vector<Stretch> all) {
  std::sort(all.begin(), all.end(), [](const Stretch& a, const Stretch& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  std::vector<Stretch> out;
  for (const Stretch& s : all) {
    if (!out.empty() && s.begin < out.back().end) {
      out.back().end = std::max(out.back().end, s.end);
    } else {
      out.push_back(s);
    }
  }
  return out;
}

void find_values(std::string_view text, const std::vector<std::string>& secrets,
                 std::vector<Stretch>& out) {
  for (const std::string& secret : secrets) {
    if (secret.empty()) continue;
    for (std::size_t at = text.find(secret); at != text.npos; at = text.find(secret, at + 1)) {
      const std::size_t end = at + secret.size();
      // A short one is a word of its own or nothing: a hash, a path, a number may hold it.
      if (secret.size() < kMinSecretBytes &&
          ((at > 0 && word_char(text[at - 1])) || (end < text.size() && word_char(text[end]))))
        continue;
      out.push_back({at, end});
    }
  }
}

int hex(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

std::string percent_decoded(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && hex(text[i + 1]) >= 0 && hex(text[i + 2]) >= 0) {
      out += static_cast<char>(hex(text[i + 1]) * 16 + hex(text[i + 2]));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string percent_encoded(const std::string& text, const char* digits) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || c == '-' || c == '_' || c == '.' || c == '~') {
      out += c;
    } else {
      out += '%';
      out += digits[byte >> 4];
      out += digits[byte & 15];
    }
  }
  return out;
}

std::string replaced(const std::string& text, std::string_view from, std::string_view to) {
  std::string out = text;
  for (std::size_t at = out.find(from); at != out.npos; at = out.find(from, at + to.size()))
    out.replace(at, from.size(), to);
  return out;
}

bool is_user_option(std::string_view word) {
  return word == "-u" || word == "--user" || word == "-U" || word == "--proxy-user";
}

// Of user:password.
void find_password(std::string_view user, std::vector<std::string>& out) {
  const std::size_t colon = user.find(':');
  if (colon != user.npos && worth_masking(user.substr(colon + 1)))
    out.emplace_back(user.substr(colon + 1));
}

}  // namespace

bool is_secret_name(std::string_view name) {
  const std::string upper = upper_of(name);
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
    for (const std::string_view word : {"TOKEN", "KEY", "PASS", "PAT", "AUTH", "BEARER"})
      secret |= last == word;
    // PWD alone is the shell's folder.
    secret |= last == "PWD" && (words > 0 || end < upper.size());
    secret |= last.size() > 5 && (last.ends_with("TOKEN") || last.ends_with("KEY"));
    at = end + 1;
  }
  // PGPASS, but not what only sounds like it; COOKIE_DOMAIN is no cookie.
  secret |= last.ends_with("PASS") && last != "BYPASS" && last != "COMPASS";
  secret |= last.ends_with("COOKIE") || last.ends_with("COOKIES");
  // Where the secret lies, not what it is.
  return secret && last != "PATH" && last != "FILE" && last != "DIR" && last != "HOME";
}

bool worth_masking(std::string_view value) {
  if (value.size() < kLeastBytes || is_number(value)) return false;
  if (value.size() < kMinSecretBytes && plain_word(value)) return false;
  // Our own mask, or what an environment that was masked before holds.
  return value.find(kMask) == value.npos;
}

void find_named_secret(std::string_view name, std::string_view value,
                       std::vector<std::string>& out) {
  if (is_secret_name(name) && worth_masking(value)) out.emplace_back(value);
  find_secrets(value, out);
}

void find_secrets(std::string_view text, std::vector<std::string>& out) {
  for (const Stretch& s : secret_shapes(text)) {
    const std::string_view value = text.substr(s.begin, s.end - s.begin);
    // A whole private key is not looked for elsewhere, its lines are.
    if (value.find('\n') == value.npos) {
      if (worth_masking(value) && value.size() <= kShapeMargin) out.emplace_back(value);
      continue;
    }
    for (std::size_t at = 0; at < value.size();) {
      const std::size_t end = std::min(value.find('\n', at), value.size());
      const std::string_view line = value.substr(at, end - at);
      if (line.size() >= 16 && out.size() < 10000) out.emplace_back(line);
      at = end + 1;
    }
  }
}

void find_argument_secrets(const std::vector<std::string>& argv, std::vector<std::string>& out) {
  bool fetches = false;  // -u is a user with a password only to programs that fetch
  for (std::size_t i = 0; i < argv.size(); ++i) {
    const std::string_view word = argv[i];
    find_secrets(word, out);
    fetches = fetches || word.ends_with("curl") || word.ends_with("wget");
    if (fetches && word.starts_with("-u") && word.size() > 2) find_password(word.substr(2), out);
    if (fetches && word.starts_with("--user=")) find_password(word.substr(7), out);
    const std::size_t equal = word.find('=');
    const std::size_t dashes = std::min(word.find_first_not_of('-'), word.size());
    if (equal != word.npos) {
      const std::string_view name = word.substr(0, equal);
      // A path before the sign is none of a name's business.
      if (name.find_first_of("/:? ") == name.npos) {
        std::string_view value = word.substr(equal + 1);
        find_named_secret(name.substr(std::min(dashes, name.size())), value, out);
      }
    } else if (fetches && i + 1 < argv.size() && is_user_option(word)) {
      find_password(argv[i + 1], out);
    } else if (dashes > 0 && i + 1 < argv.size() && !argv[i + 1].starts_with("-")) {
      find_named_secret(word.substr(dashes), argv[i + 1], out);
    }
  }
}

std::vector<std::string> spellings(std::vector<std::string> values) {
  std::vector<std::string> all;
  const auto add = [&](std::string text) {
    if (worth_masking(text)) all.push_back(std::move(text));
  };
  for (const std::string& value : values) {
    if (value.empty()) continue;
    for (const std::string& plain : {value, percent_decoded(value)}) {
      add(plain);
      std::string quoted;
      append_json_string(quoted, plain);
      add(quoted.substr(1, quoted.size() - 2));
      add(percent_encoded(plain, "0123456789ABCDEF"));
      add(percent_encoded(plain, "0123456789abcdef"));
      add(replaced(plain, "'", "'\\''"));
      // As Python prints it: json.dumps() has no letter beyond ASCII, repr() escapes what it must.
      const std::string ascii =
          nlohmann::json(plain).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
      add(ascii.substr(1, ascii.size() - 2));
      const std::string repr = replaced(plain, "\\", "\\\\");
      add(repr);
      add(replaced(repr, "'", "\\'"));
    }
  }
  std::sort(all.begin(), all.end(), [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() > b.size() : a < b;
  });
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

std::string mask_secrets(std::string_view text, const std::vector<std::string>& secrets) {
  return mask_part(text, 0, text.size(), secrets);
}

std::string mask_part(std::string_view text, std::size_t begin, std::size_t end,
                      const std::vector<std::string>& secrets, std::vector<std::string>* found) {
  end = std::min(end, text.size());
  begin = std::min(begin, end);
  if (found != nullptr) find_secrets(text, *found);
  std::vector<Stretch> all = secret_shapes(text);
  find_values(text, secrets, all);
  std::string out;
  std::size_t at = begin;
  for (const auto& [from, to] : merged(std::move(all))) {
    if (to <= at) continue;
    if (from >= end) break;
    if (from > at) out += text.substr(at, from - at);
    out += kMask;
    at = to;
  }
  if (at < end) out += text.substr(at, end - at);
  return out;
}

}  // namespace warmgate::trace
