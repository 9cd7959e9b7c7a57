// The section of an explanation that holds one log against another.
#include <fmt/format.h>

#include "harness/cli/explain_report.h"

namespace warmgate::cli {

using reports::Tone;

void print_comparison(reports::Printer& out, const Explanation& all) {
  const explain::Comparison& c = *all.comparison;
  if (!c.same_engine)
    out.paragraph(
        2, fmt::format("A is of {}, B of {}", all.other->reading.engine, all.start.reading.engine),
        Tone::kDoubt);
  if (!c.same_version)
    out.row(2, out.cell("version", Tone::kPlain, 24) +
                   out.cell(all.other->reading.version.value_or("-"), Tone::kPlain, 16) +
                   out.cell(all.start.reading.version.value_or("-")));
  out.row(2, out.cell("outcome", Tone::kPlain, 24) +
                 out.cell(all.other->reading.outcome, Tone::kPlain, 16) +
                 out.cell(all.start.reading.outcome));
  if (!c.begins.empty())
    out.paragraph(2, c.begins, Tone::kDoubt, out.cell("not whole", Tone::kStrong, 24), 24);
  out.paragraph(2, c.divergence.empty() ? "none: both say the same steps" : c.divergence,
                Tone::kPlain, out.cell("parts", Tone::kStrong, 24), 24);
  for (const explain::PhaseDifference& phase : c.phases) {
    const auto text = [](int times, bool passed, const std::optional<double>& seconds) {
      if (times == 0) return std::string(passed ? "not in the log" : "not reached");
      return seconds_text(seconds) + (times > 1 ? fmt::format(" ({} times)", times) : "");
    };
    out.row(2,
            out.cell(phase.phase, Tone::kPlain, 24) +
                out.cell(text(phase.times_a, phase.passed_a, phase.seconds_a), Tone::kPlain, 16) +
                out.cell(text(phase.times_b, phase.passed_b, phase.seconds_b),
                         phase.times_b == 0 && !phase.passed_b ? Tone::kBad : Tone::kPlain));
  }
  for (const explain::FigureDifference& figure : c.figures)
    out.row(
        2,
        out.cell(figure.name, Tone::kPlain, 24) + out.cell(value_text(figure.a), Tone::kPlain, 16) +
            out.cell(value_text(figure.b)) +
            (figure.per_cent ? out.cell(fmt::format("  {:+.1f} %", *figure.per_cent), Tone::kQuiet)
                             : ""));
  for (const explain::OnlyIn& only : c.only)
    out.paragraph(2, fmt::format("{}: {} (line {})", only.sort, only.text, only.line), Tone::kPlain,
                  out.cell(only.side == 'b' ? "only in B" : "only in A",
                           only.side == 'b' ? Tone::kDoubt : Tone::kQuiet, 24),
                  24);
}

}  // namespace warmgate::cli
