#include "reports/markdown_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <utility>

#include "reports/ansi.h"
#include "reports/text.h"

namespace warmgate::reports {
namespace {

constexpr std::string_view kZeroWidth = "\xe2\x80\x8b";

std::size_t longest_run(std::string_view text, char c) {
  std::size_t longest = 0, run = 0;
  for (const char each : text) {
    run = each == c ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  return longest;
}

bool alnum(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

// True if a filter of GitHub reads on from text[i], so that a zero-width space must follow it.
bool starts_reference(std::string_view text, std::size_t i) {
  const bool more = i + 1 < text.size();
  switch (text[i]) {
    case '@':  // @user, a@b.c
    case '#':  // #123, owner/repo#123
      return true;
    case ':':  // https://, :emoji:
      return more &&
             (text[i + 1] == '/' || text[i + 1] == '+' || text[i + 1] == '-' || alnum(text[i + 1]));
    case '-':  // GH-123
      return more && std::isdigit(static_cast<unsigned char>(text[i + 1])) != 0;
    case 'w':  // www.example.org
    case 'W':
      return more && text[i + 1] == '.';
    default:
      return false;
  }
}

}  // namespace

MarkdownText::MarkdownText(std::vector<std::string> secrets) : secrets_(std::move(secrets)) {
  // Events are shown as JSON, which writes some characters in its own way.
  const std::size_t plain = secrets_.size();
  for (std::size_t i = 0; i < plain; ++i) {
    const std::string quoted =
        nlohmann::json(secrets_[i]).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    if (const std::string inner = quoted.substr(1, quoted.size() - 2); inner != secrets_[i])
      secrets_.push_back(inner);
  }
}

std::string MarkdownText::clean(std::string_view text, std::size_t most) const {
  // A log line may be megabytes: bytes are cut first, far beyond the columns wanted. A secret that
  // this cuts in half is at the end, which goes.
  std::size_t longest = trace::kShapeMargin;
  for (const std::string& secret : secrets_) longest = std::max(longest, secret.size());
  const std::size_t bytes = most * 16 + 4096;
  const bool cut = text.size() > bytes + longest;
  std::string masked = mask(cut ? text.substr(0, bytes + longest) : text, secrets_);
  if (cut) masked.resize(masked.size() - std::min(longest, masked.size()));
  // Masked again, because colour in the middle hides a secret.
  const std::string plain = printable(mask(without_ansi(masked), secrets_));
  const std::string shown = shorten(plain, most);
  if (shown.size() == plain.size() && !cut) return shown;
  return shown + fmt::format(" (cut, {} bytes in all)", text.size());
}

std::string MarkdownText::code(std::string_view text, std::size_t most) const {
  const std::string body = clean(text, most);
  if (body.find_first_not_of(' ') == std::string::npos) return "–";
  const std::string fence(longest_run(body, '`') + 1, '`');
  // One blank at each end is taken away again where both are there.
  const bool padded =
      body.front() == '`' || body.back() == '`' || (body.front() == ' ' && body.back() == ' ');
  std::string out = fence + (padded ? " " : "");
  for (const char c : body) {
    // A table is cut into cells before spans are read, and takes this backslash away.
    if (c == '|') out += '\\';
    out += c;
  }
  return out + (padded ? " " : "") + fence;
}

std::string MarkdownText::prose(std::string_view text, std::size_t most) const {
  std::string body = clean(text, most);
  body.erase(0, std::min(body.find_first_not_of(' '),
                         body.size()));  // four blanks would begin a block of code
  std::string out;
  for (std::size_t i = 0; i < body.size(); ++i) {
    const char c = body[i];
    if (i == 0 && (c == '-' || c == '+' || (c >= '0' && c <= '9'))) {
      out += fmt::format("&#{};", static_cast<int>(c));  // begins no list
    } else if (c == '$') {
      out += "<span>$</span>";  // GitHub's own way to write one that begins no formula
    } else if (std::string_view("\\`*_{}[]<>&\"'|~^#@").find(c) != std::string_view::npos) {
      out += fmt::format("&#{};", static_cast<int>(c));
    } else {
      out += c;
    }
    if (starts_reference(body, i)) out += kZeroWidth;
  }
  return out;
}

std::string MarkdownText::html(std::string_view text, std::size_t most) const {
  std::string out = "<code>";
  for (const char c : clean(text, most)) {
    if (std::string_view("<>&\"'").find(c) != std::string_view::npos)
      out += fmt::format("&#{};", static_cast<int>(c));
    else
      out += c;
  }
  return out + "</code>";
}

std::string MarkdownText::block(std::string_view kind, const std::vector<std::string>& lines,
                                std::size_t most) const {
  std::vector<std::string> cleaned;
  std::size_t run = 2;
  for (const std::string& line : lines) {
    cleaned.push_back(without_ci_commands(clean(line, most)));
    run = std::max(run, longest_run(cleaned.back(), '`'));
  }
  const std::string fence(run + 1, '`');
  std::string out = fence + std::string(kind) + "\n";
  for (const std::string& line : cleaned) out += line + "\n";
  return out + fence + "\n";
}

}  // namespace warmgate::reports
