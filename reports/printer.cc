#include "reports/printer.h"

#include <algorithm>
#include <utility>

namespace warmgate::reports {

Tone tone_of(verdict::Verdict verdict) {
  switch (verdict) {
    case verdict::Verdict::kPass:
      return Tone::kGood;
    case verdict::Verdict::kFail:
    case verdict::Verdict::kInfra:
      return Tone::kBad;
    case verdict::Verdict::kInconclusive:
      return Tone::kDoubt;
    case verdict::Verdict::kSkip:
      return Tone::kQuiet;
  }
  return Tone::kPlain;
}

Printer::Printer(Style style, std::vector<std::string> secrets)
    : style_(style), secrets_(std::move(secrets)) {
  style_.width = std::clamp<std::size_t>(style_.width, 40, 200);
}

std::string Printer::clean(std::string_view text) const {
  return printable(mask(text, secrets_), style_.charset);
}

std::string Printer::paint(std::string_view text, Tone tone) const {
  if (!style_.colour || tone == Tone::kPlain || text.empty()) return std::string(text);
  const char* code = "0";
  switch (tone) {
    case Tone::kGood:
      code = "32";
      break;
    case Tone::kBad:
      code = "1;31";
      break;
    case Tone::kDoubt:
      code = "33";
      break;
    case Tone::kQuiet:
      code = "2";
      break;
    case Tone::kStrong:
      code = "1";
      break;
    case Tone::kPlain:
      break;
  }
  return "\x1b[" + std::string(code) + "m" + std::string(text) + "\x1b[0m";
}

std::string Printer::cell(std::string_view text, Tone tone, std::size_t pad) const {
  const std::string cleaned = clean(text);
  const std::size_t used = columns(cleaned);
  // What is wider than its column is still told from the next one.
  return paint(cleaned, tone) + std::string(used < pad ? pad - used : (pad > 0 ? 1 : 0), ' ');
}

void Printer::emit(std::string line) {
  const std::size_t end = line.find_last_not_of(' ');
  line.erase(end == std::string::npos ? 0 : end + 1);
  out_ += without_ci_commands(std::move(line));
  out_ += '\n';
}

void Printer::row(std::size_t indent, std::string_view cells) {
  emit(std::string(indent, ' ') + std::string(cells));
}

void Printer::paragraph(std::size_t indent, std::string_view text, Tone tone, std::string_view lead,
                        std::size_t hang, std::size_t lead_more) {
  const std::size_t taken = indent + hang;
  const std::size_t room = style_.width > taken + 20 ? style_.width - taken : 20;
  // Characters that never come out of clean() stand in for the lead's overhang while the text is
  // wrapped.
  const std::size_t more = std::min(lead_more, room / 2);
  const std::string stand_in(more, '\x01');
  const std::string body = clean(text);
  bool first = true;
  for (std::string& line : wrap(stand_in.empty() ? body : stand_in + body, room)) {
    if (first) line.erase(0, std::min(more, line.size()));
    emit((first ? std::string(indent, ' ') + std::string(lead) : std::string(taken, ' ')) +
         paint(line, tone));
    first = false;
  }
}

void Printer::command(std::size_t indent, std::string_view label, std::string_view text) {
  emit(std::string(indent, ' ') + paint(clean(label), Tone::kQuiet) + " " +
       paint(clean(text), Tone::kStrong));
}

void Printer::blank() { out_ += '\n'; }

}  // namespace warmgate::reports
