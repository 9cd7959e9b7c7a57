// Lines for a terminal or a log: width, colour and character set in one place. Everything handed
// in as text is treated as foreign: it is made printable, masked and kept from starting a CI
// runner's command.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "reports/report.h"
#include "reports/text.h"

namespace warmgate::reports {

/// What a terminal, or the lack of one, asks of a report.
struct Style {
  bool colour = false;
  Charset charset = Charset::kAscii;
  std::size_t width = 100;
};

enum class Tone { kPlain, kGood, kBad, kDoubt, kQuiet, kStrong };
Tone tone_of(verdict::Verdict verdict);

class Printer {
 public:
  Printer(Style style, std::vector<std::string> secrets);

  /// Text in a tone, padded with blanks to `pad` columns; for use inside row().
  std::string cell(std::string_view text, Tone tone = Tone::kPlain, std::size_t pad = 0) const;
  /// One line from cells made by cell(), as it is: not wrapped, not shortened.
  void row(std::size_t indent, std::string_view cells);
  /// Wrapped text. `lead`, made by cell(), is put in front of the first line; the lines after it
  /// hang by `hang` columns, and the first is shorter by `lead_more` columns beyond `hang`.
  void paragraph(std::size_t indent, std::string_view text, Tone tone = Tone::kPlain,
                 std::string_view lead = {}, std::size_t hang = 0, std::size_t lead_more = 0);
  /// A command to copy: one line whatever its length.
  void command(std::size_t indent, std::string_view label, std::string_view text);
  /// Lines that another printer of the same style made.
  void append(std::string_view lines) { out_ += lines; }
  void blank();

  /// Foreign text made printable and masked, in this character set.
  std::string clean(std::string_view text) const;
  const std::vector<std::string>& secrets() const { return secrets_; }
  const Style& style() const { return style_; }
  std::string take() { return std::move(out_); }
  std::string_view dot() const { return style_.charset == Charset::kAscii ? " - " : " · "; }

 private:
  std::string paint(std::string_view text, Tone tone) const;
  void emit(std::string line);
  Style style_;
  std::vector<std::string> secrets_;
  std::string out_;
};

}  // namespace warmgate::reports
