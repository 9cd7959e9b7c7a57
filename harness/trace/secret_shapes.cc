// What shows by its shape that it is a secret.
#include <algorithm>
#include <array>
#include <cstring>

#include "harness/trace/secrets.h"

namespace warmgate::trace {
namespace {

bool lower(char c) { return c >= 'a' && c <= 'z'; }
bool upper(char c) { return c >= 'A' && c <= 'Z'; }
bool digit(char c) { return c >= '0' && c <= '9'; }
bool alnum(char c) { return lower(c) || upper(c) || digit(c); }
bool word(char c) { return alnum(c) || c == '_'; }
bool name_char(char c) { return word(c) || c == '-' || c == '.'; }
bool url_word(char c) { return word(c) || c == '-'; }
bool credential(char c) { return word(c) || std::strchr("-._~+/=", c) != nullptr; }
bool blank(char c) { return c == ' ' || c == '\t'; }

// Tokens that their makers gave a prefix so that they can be found.
struct Prefix {
  std::string_view text;
  bool (*body)(char);
  std::size_t least;  // bytes that must follow
  bool with_digit;    // words joined by dashes are no token
};
constexpr auto kPrefixes = std::to_array<Prefix>({
    {"hf_", alnum, 16, false},        {"api_org_", alnum, 16, false},
    {"ghp_", alnum, 20, false},       {"gho_", alnum, 20, false},
    {"ghu_", alnum, 20, false},       {"ghs_", alnum, 20, false},
    {"ghr_", alnum, 20, false},       {"github_pat_", word, 20, false},
    {"glpat-", url_word, 16, false},  {"AKIA", alnum, 16, false},
    {"ASIA", alnum, 16, false},       {"AIza", url_word, 30, false},
    {"ya29.", url_word, 20, false},   {"sk-", url_word, 20, true},
    {"xoxb-", url_word, 10, true},    {"xoxp-", url_word, 10, true},
    {"xoxa-", url_word, 10, true},    {"xoxs-", url_word, 10, true},
    {"nvapi-", url_word, 20, false},  {"npm_", alnum, 30, false},
    {"pypi-Ag", url_word, 20, false}, {"dckr_pat_", url_word, 16, false},
    {"bkua_", alnum, 20, false},      {"bkat_", alnum, 20, false},
    {"r8_", alnum, 30, false},        {"wandb_v1_", word, 20, false},
});

constexpr std::array<bool, 256> starts() {
  std::array<bool, 256> out{};
  for (const char c : {'e', 'b', 'B'}) out[static_cast<unsigned char>(c)] = true;
  for (const Prefix& prefix : kPrefixes) out[static_cast<unsigned char>(prefix.text[0])] = true;
  return out;
}
constexpr std::array<bool, 256> kStarts = starts();

std::string folded(std::string_view name) {
  std::string out(name);
  for (char& c : out) {
    if (upper(c)) c = static_cast<char>(c | 0x20);
    if (c == '-') c = '_';
  }
  return out;
}

template <std::size_t N>
bool is_one_of(std::string_view name, const std::array<std::string_view, N>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Whatever stands in front of them: api_key, my-api-key, providerApiKey.
constexpr auto kStrong = std::to_array<std::string_view>({"password",         "passwd",
                                                          "passphrase",       "secret",
                                                          "api_key",          "apikey",
                                                          "access_token",     "auth_token",
                                                          "refresh_token",    "id_token",
                                                          "session_token",    "security_token",
                                                          "hf_token",         "github_token",
                                                          "gitlab_token",     "private_token",
                                                          "bearer_token",     "secret_key",
                                                          "access_key",       "private_key",
                                                          "account_key",      "authorization",
                                                          "x_amz_signature",  "x_amz_credential",
                                                          "x_goog_signature", "x_goog_credential",
                                                          "x_auth_token",     "client_secret",
                                                          "accesskeyid",      "pgpass"});
// Only in the query of a URL.
constexpr auto kQuery = std::to_array<std::string_view>(
    {"sig", "signature", "token", "key", "auth", "jwt", "policy", "credential", "pass", "pwd"});
// Names of tokens that models are made of.
constexpr auto kVocabulary = std::to_array<std::string_view>(
    {"eos", "bos", "pad", "unk", "sep", "cls", "mask", "image", "video", "audio", "start", "end",
     "stop", "next", "first", "last", "special", "draft", "vision"});

bool strong(std::string_view name) {
  return std::any_of(kStrong.begin(), kStrong.end(),
                     [&](std::string_view known) { return name.ends_with(known); });
}

bool in_query(std::string_view text, std::size_t name_begin) {
  if (name_begin == 0) return false;
  const char before = text[name_begin - 1];
  return before == '?' || before == '&' ||
         (before == ';' && text.substr(0, name_begin).ends_with("&amp;"));
}

// NAME=value as a shell and an environment write it. In a compile key, kernel{NAME=value,…}, it is
// something else.
bool variable(std::string_view text, std::size_t begin, std::string_view name) {
  if (begin > 0 && (text[begin - 1] == '{' || text[begin - 1] == ',')) return false;
  if (!upper(name.front()) || std::any_of(name.begin(), name.end(), lower)) return false;
  if (!is_secret_name(name)) return false;
  const std::string small = folded(name);
  if (small.ends_with("key"))
    return strong(small) || small.find("secret") != small.npos || small.ends_with("signing_key") ||
           small.ends_with("encryption_key");
  if (!small.ends_with("_token")) return small.find('_') != small.npos || small == "token";
  const std::size_t dash = small.rfind('_', small.size() - 7);
  const std::size_t from = dash == small.npos ? 0 : dash + 1;
  return !is_one_of(std::string_view(small).substr(from, small.size() - 6 - from), kVocabulary);
}

bool names_a_secret(std::string_view text, std::size_t begin, std::size_t end) {
  const std::string_view name = text.substr(begin, end - begin);
  if (name.size() < 3 || name.size() > 64) return false;
  // The last letters of all names below; most texts end here.
  if (std::strchr("dterynlghzsDTERYNLGHZS", name.back()) == nullptr) return false;
  const bool query = in_query(text, begin);
  if (!query && name.size() < 5) return false;
  const std::string small = folded(name);
  if (strong(small)) return true;
  if (query)
    return is_one_of(small, kQuery) || small.ends_with("_token") || small.ends_with("_signature") ||
           small.ends_with("_sig");
  return variable(text, begin, name);
}

// Nobody's secret is longer; without a bound a hostile text would be read again and again.
constexpr std::size_t kLongestValue = 2048;

class Scanner {
 public:
  explicit Scanner(std::string_view text, bool first_only) : text_(text), first_(first_only) {}

  std::vector<Stretch> run() {
    webhooks();
    std::size_t fresh = 0;
    for (std::size_t i = 0; i < text_.size(); ++i) {
      if (first_ && !out_.empty()) break;
      const char c = text_[i];
      if (c == ':' && text_.compare(i, 3, "://") == 0) {
        url(i + 3);
      } else if (c == '=' || c == ':') {
        assignment(i);
      } else if (alnum(c)) {
        const std::size_t end = word_end(i);
        if (kStarts[static_cast<unsigned char>(c)] && (i == 0 || !word(text_[i - 1]) || i == fresh))
          token(i);
        // A token may stand behind an underscore's word, never in the middle of letters.
        i = std::max(i, end - 1);
      } else if (c == '\\' && i + 1 < text_.size() && std::strchr("nrt", text_[i + 1])) {
        fresh = ++i + 1;  // `\nhf_…`: the letter of an escape is no part of the word
      } else if (c == '-') {
        if (text_.compare(i, 11, "-----BEGIN ") == 0) {
          i = private_key(i);
        } else if (text_.compare(i, 2, "--") == 0 && i + 2 < text_.size() && alnum(text_[i + 2])) {
          option(i + 2);
        }
        user_option(i);
      }
    }
    std::sort(out_.begin(), out_.end(),
              [](const Stretch& a, const Stretch& b) { return a.begin < b.begin; });
    std::vector<Stretch> merged;
    for (const Stretch& s : out_) {
      if (!merged.empty() && s.begin <= merged.back().end) {
        merged.back().end = std::max(merged.back().end, s.end);
      } else {
        merged.push_back(s);
      }
    }
    return merged;
  }

 private:
  std::size_t limit(std::size_t from) const { return std::min(text_.size(), from + kLongestValue); }
  std::size_t word_end(std::size_t i) const {
    while (i < text_.size() && word(text_[i])) ++i;
    return i;
  }

  void add(std::size_t begin, std::size_t end) {
    if (end <= begin || text_.compare(begin, kMask.size(), kMask) == 0) return;
    out_.push_back({begin, end});
  }

  // user:password@host; a password may hold a slash though it should not.
  void url(std::size_t begin) {
    std::size_t end = begin, at = text_.npos, slash = text_.npos, colon = text_.npos;
    for (; end < text_.size() && end - begin < kLongestValue; ++end) {
      const char c = text_[end];
      if (blank(c) || c == '\n' || c == '\r' || c == '"' || c == '\'' || c == '<' || c == '>' ||
          c == '`' || c == '?' || c == '#' || c == '\\')
        break;
      if (c == '/' && slash == text_.npos) slash = end;
      if (c == ':' && colon == text_.npos && slash == text_.npos) colon = end;
      if (c == '@' && (slash == text_.npos || !port(colon, slash))) at = end;
    }
    if (at == text_.npos) return;
    if (colon != text_.npos && colon < at) return add(colon + 1, at);
    if (slash == text_.npos || slash > at) {
      // A token alone; git@host is a name. Sentry's are keys whatever their length: KEY@host/42.
      if (at - begin >= 16 || (at - begin >= 6 && only_digits(at, end))) add(begin, at);
    }
  }
  // True if all that follows the host is /digits.
  bool only_digits(std::size_t at, std::size_t end) const {
    const std::size_t slash = text_.substr(0, end).find('/', at);
    if (slash == text_.npos || slash + 1 >= end) return false;
    return std::all_of(text_.begin() + static_cast<std::ptrdiff_t>(slash) + 1,
                       text_.begin() + static_cast<std::ptrdiff_t>(end), digit);
  }

  // Addresses to which anybody may post who knows them.
  void webhooks() {
    for (const std::string_view path :
         {"hooks.slack.com/services/", "hooks.slack.com/workflows/", "hooks.slack.com/triggers/",
          "discord.com/api/webhooks/", "discordapp.com/api/webhooks/"}) {
      for (std::size_t at = text_.find(path); at != text_.npos; at = text_.find(path, at + 1)) {
        const std::size_t begin = at + path.size();
        std::size_t end = begin;
        while (end < limit(begin) && (url_word(text_[end]) || text_[end] == '/')) ++end;
        if (end - begin >= 8) add(begin, end);
      }
    }
  }

  // `curl -u user:password`, also as lists print it; to other programs -u is something else.
  void user_option(std::size_t begin) {
    if (begin > 0 && !blank(text_[begin - 1]) && text_[begin - 1] != '\'' &&
        text_[begin - 1] != '"')
      return;
    std::size_t at = begin;
    for (const std::string_view name : {"--proxy-user", "--user", "-u", "-U"}) {
      if (text_.compare(begin, name.size(), name) == 0) {
        at = begin + name.size();
        break;
      }
    }
    if (at == begin) return;
    const std::size_t from = begin - std::min<std::size_t>(begin, 512);
    std::string_view line = text_.substr(from, begin - from);
    line.remove_prefix(line.find_last_of('\n') + 1);  // npos + 1 is 0
    if (line.find("curl") == line.npos && line.find("wget") == line.npos) return;
    const std::size_t last = std::min(text_.size(), at + 8);
    while (at < last && std::strchr("\\'\", \t=", text_[at]) != nullptr) ++at;
    const char quote = text_[at - 1] == '\'' || text_[at - 1] == '"' ? text_[at - 1] : '\0';
    const std::string_view stops = quote == '\'' ? "'\n" : quote == '"' ? "\"\n" : " \t'\"\n\r\\`";
    const std::size_t end = std::min(text_.find_first_of(stops, at), limit(at));
    const std::size_t colon = text_.substr(at, end - at).find(':');
    if (end <= at || colon == text_.npos || text_[at] == '-') return;
    if (!harmless(text_.substr(at + colon + 1, end - at - colon - 1))) add(at + colon + 1, end);
  }
  // host:8000/path is no user with a password.
  bool port(std::size_t colon, std::size_t slash) const {
    if (colon == text_.npos || colon + 1 >= slash) return true;
    for (std::size_t i = colon + 1; i < slash; ++i) {
      if (!digit(text_[i])) return false;
    }
    return true;
  }

  void assignment(std::size_t sign) {
    std::size_t end = sign;
    while (end > 0 && blank(text_[end - 1]) && sign - end < 2) --end;
    if (end > 0 && (text_[end - 1] == '"' || text_[end - 1] == '\'')) {
      --end;
      if (end > 0 && text_[end - 1] == '\\') --end;
    }
    std::size_t begin = end;
    while (begin > 0 && name_char(text_[begin - 1]) && end - begin <= 64) --begin;
    while (begin < end && !alnum(text_[begin])) ++begin;  // --api-key
    if (begin == end) return;
    if (begin > 1 && text_[begin - 1] == '\\') ++begin;  // \nNAME=
    if (!names_a_secret(text_, begin, end)) return;
    std::size_t at = sign + 1;
    while (at < text_.size() && blank(text_[at]) && at - sign < 3) ++at;
    const bool header = folded(text_.substr(begin, end - begin)).ends_with("authorization");
    values(at, header);
  }

  // `--api-key VALUE`, also as lists print it: '--api-key', 'VALUE'.
  void option(std::size_t begin) {
    std::size_t end = begin;
    while (end < text_.size() && name_char(text_[end]) && end - begin <= 64) ++end;
    if (end >= text_.size() || end - begin > 64) return;
    const std::string small = folded(text_.substr(begin, end - begin));
    if (!strong(small) && small != "token" && !small.ends_with("_token")) return;
    std::size_t at = end;
    while (at < text_.size() && (text_[at] == '\\' || text_[at] == '\'' || text_[at] == '"')) ++at;
    if (at < text_.size() && text_[at] == ',' && at > end) ++at;
    if (at >= text_.size() || !blank(text_[at])) return;
    while (at < text_.size() && blank(text_[at])) ++at;
    if (at < text_.size() && text_[at] == '-') return;  // the next option
    values(at, false);
  }

  // One value at `at`, quoted or not, or a list of quoted ones.
  void values(std::size_t at, bool header) {
    if (at < text_.size() && (text_[at] == '[' || text_[at] == '(') &&
        text_.compare(at, kMask.size(), kMask) != 0) {
      const std::size_t last = limit(at);
      ++at;
      while (at < last && text_[at] != ']' && text_[at] != ')') {
        if (text_[at] == '"' || text_[at] == '\'') {
          at = value(at, header);
        } else {
          ++at;
        }
      }
      return;
    }
    value(at, header);
  }

  // Returns where it ended.
  std::size_t value(std::size_t at, bool header) {
    std::string_view quote;
    if (at + 1 < text_.size() && text_[at] == '\\' &&
        (text_[at + 1] == '"' || text_[at + 1] == '\''))
      quote = text_.substr(at, 2);
    else if (at < text_.size() && (text_[at] == '"' || text_[at] == '\''))
      quote = text_.substr(at, 1);
    const std::size_t begin = at + quote.size();
    std::size_t end = begin;
    if (!quote.empty()) {
      const std::string_view rest = text_.substr(begin, kLongestValue);
      std::size_t size = rest.find(quote);
      while (quote.size() == 1 && size != rest.npos && size > 0 && rest[size - 1] == '\\')
        size = rest.find(quote, size + 1);
      if (size == rest.npos) size = std::min(rest.find('\n'), rest.size());
      end = begin + size;
    } else {
      end = plain_end(begin);
      // Authorization: Bearer VALUE
      if (header && end < text_.size() && blank(text_[end]) &&
          is_scheme(text_.substr(begin, end - begin)))
        return value(end + 1, false);
    }
    std::size_t from = begin;
    if (!quote.empty()) {
      const std::size_t space = text_.substr(begin, end - begin).find(' ');
      if (space != text_.npos && is_scheme(text_.substr(begin, space))) from = begin + space + 1;
    }
    if (!harmless(text_.substr(from, end - from))) add(from, end);
    return end + (quote.empty() ? 0 : quote.size());
  }

  std::size_t plain_end(std::size_t at) const {
    const std::size_t last = limit(at);
    while (at < last && !blank(text_[at]) &&
           std::strchr(",;&)\"'}<>|]\r\n\\`", text_[at]) == nullptr)
      ++at;
    return at;
  }

  static bool is_scheme(std::string_view text) {
    const std::string small = folded(text);
    return small == "bearer" || small == "basic" || small == "token" || small == "digest" ||
           small == "negotiate";
  }

  // Nothing that anybody would have to hide.
  static bool harmless(std::string_view value) {
    if (value.size() < 3 || value.front() == '$' || value.front() == '{') return true;
    const std::string small = folded(value);
    for (const std::string_view known :
         {"none", "null", "true", "false", "empty", "not_set", "unset", "redacted", "hidden",
          "optional", "string", "str"}) {
      if (small == known) return true;
    }
    return std::all_of(value.begin(), value.end(), [](char c) {
      return c == '*' || c == '.' || c == 'x' || c == 'X' || c == '-';
    });
  }

  void token(std::size_t begin) {
    switch (text_[begin]) {
      case 'B':
      case 'b':
        bearer(begin);
        break;
      case 'e':
        jwt(begin);
        return;
      default:
        break;
    }
    if (begin + 1 >= text_.size()) return;
    for (const Prefix& prefix : kPrefixes) {
      if (prefix.text[0] != text_[begin] || prefix.text[1] != text_[begin + 1]) continue;
      if (text_.compare(begin, prefix.text.size(), prefix.text) != 0) continue;
      const std::size_t body = begin + prefix.text.size();
      std::size_t end = body;
      bool digits = false;
      while (end < limit(body) && prefix.body(text_[end])) digits |= digit(text_[end++]);
      if (end - body >= prefix.least && (digits || !prefix.with_digit)) add(begin, end);
    }
  }

  void bearer(std::size_t begin) {
    if (folded(text_.substr(begin, 7)) != "bearer ") return;
    std::size_t at = begin + 7;
    while (at < text_.size() && blank(text_[at])) ++at;
    std::size_t end = at;
    bool digits = false;
    while (end < limit(at) && credential(text_[end]) && text_[end] != '\0')
      digits |= digit(text_[end++]);
    if (end - at >= 20 || (end - at >= 6 && digits)) add(at, end);
  }

  // header.payload.signature, each base64url, the first two beginning with {"
  void jwt(std::size_t begin) {
    if (text_.compare(begin, 3, "eyJ") != 0) return;
    std::size_t end = begin, dots = 0;
    while (end < limit(begin) && (url_word(text_[end]) || text_[end] == '.'))
      dots += text_[end++] == '.' ? 1 : 0;
    if (dots >= 1 && end - begin >= 20) add(begin, end);
  }

  // Returns where to look on.
  std::size_t private_key(std::size_t begin) {
    const std::string_view line = text_.substr(begin, 96);
    const std::size_t dashes = line.find("-----", 11);
    if (dashes == line.npos || line.substr(0, dashes).find("PRIVATE KEY") == line.npos)
      return begin + 10;
    const std::size_t body = begin + dashes + 5;
    const std::size_t foot = std::min(text_.find("-----END", body), text_.size());
    add(body, foot);
    return foot - 1;
  }

  std::string_view text_;
  bool first_;
  std::vector<Stretch> out_;
};

}  // namespace

std::vector<Stretch> secret_shapes(std::string_view text) { return Scanner(text, false).run(); }

bool has_secret_shape(std::string_view text) { return !Scanner(text, true).run().empty(); }

}  // namespace warmgate::trace
