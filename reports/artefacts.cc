#include "reports/artefacts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "reports/words.h"

namespace warmgate::reports {
namespace {

using verdict::ArtefactDifference;
using Line = ArtefactDifference::Line;

// So many lines of a difference fit beside what else a report has to say.
constexpr std::size_t kMostDifferences = 12;

std::string side(const std::string& value) { return value.empty() ? "-" : value; }

// "package numpy"; what has no name of its own is named by its kind.
std::string subject(const Line& line) {
  return line.what == line.name ? line.what : line.what + " " + line.name;
}

std::vector<const VariantReport*> with_artefact(const ScenarioReport& scenario) {
  std::vector<const VariantReport*> out;
  for (const VariantReport& variant : scenario.variants) {
    if (variant.artefact) out.push_back(&variant);
  }
  return out;
}

std::string counted(std::size_t count, std::string_view what) {
  std::string plural(what);
  if (count != 1) plural += "s";
  return fmt::format("{} {}", count, plural);
}

}  // namespace

std::string difference_text(const ArtefactDifference& difference) {
  if (difference.lines.empty()) {
    std::string out = difference.unseen()        ? "not observed"
                      : difference.same_artefact ? "the same artefact"
                                                 : "no difference";
    std::string looked;
    if (difference.packages > 0) looked += counted(difference.packages, "package");
    if (difference.variables > 0)
      looked += (looked.empty() ? "" : ", ") + counted(difference.variables, "variable");
    if (looked.empty()) return out;
    return out + ": " + (difference.unseen() ? "only " : "") + looked + " compared";
  }
  std::map<std::string, std::size_t> counts;
  std::vector<std::string> order;
  for (const Line& line : difference.lines) {
    if (counts[line.what]++ == 0) order.push_back(line.what);
  }
  std::string out;
  for (const std::string& what : order) {
    const bool single =
        what == "python" || what == "command" || what == "commit" || what == "contents";
    out += (out.empty() ? "" : ", ") + (single ? what : counted(counts[what], what));
  }
  return out + (difference.lines.size() == 1 ? " differs" : " differ");
}

std::vector<ArtefactDifference> artefact_differences(const ScenarioReport& scenario) {
  std::vector<ArtefactDifference> out;
  const auto variants = with_artefact(scenario);
  for (std::size_t i = 1; i < variants.size(); ++i) {
    ArtefactDifference difference =
        verdict::artefact_difference(*variants[0]->artefact, *variants[i]->artefact);
    difference.a = variants[0]->name;
    difference.b = variants[i]->name;
    out.push_back(std::move(difference));
  }
  return out;
}

void print_artefacts(Printer& out, const ScenarioReport& scenario, Detail detail) {
  const auto variants = with_artefact(scenario);
  if (variants.empty() || detail == Detail::kQuiet) return;
  std::size_t widest = 1;
  for (const VariantReport* variant : variants)
    widest = std::max(widest, std::min<std::size_t>(columns(out.clean(variant->name)), 32));
  out.row(2, out.cell("artefacts", Tone::kStrong));
  for (const VariantReport* variant : variants) {
    out.paragraph(4, verdict::identity_text(*variant->artefact, out.dot()), Tone::kPlain,
                  out.cell(variant->name, Tone::kStrong, widest + 2), widest + 2);
    for (const std::string& note : variant->artefact->notes)
      out.paragraph(4 + widest + 2, note, Tone::kQuiet);
  }
  for (const ArtefactDifference& difference : artefact_differences(scenario)) {
    out.paragraph(4, difference_text(difference), Tone::kPlain,
                  out.cell(difference.b + " against " + difference.a + ":", Tone::kStrong) + " ", 2,
                  columns(out.clean(difference.b + " against " + difference.a)));
    const std::size_t most = detail == Detail::kVerbose
                                 ? difference.lines.size()
                                 : std::min(kMostDifferences, difference.lines.size());
    for (std::size_t i = 0; i < most; ++i) {
      const Line& line = difference.lines[i];
      out.paragraph(6, fmt::format("{}: {} → {}", subject(line), side(line.a), side(line.b)),
                    Tone::kPlain, {}, 2);
    }
    if (most < difference.lines.size())
      out.row(6, out.cell(fmt::format("and {} more; --verbose shows them",
                                      difference.lines.size() - most),
                          Tone::kQuiet));
    for (const std::string& missing : difference.not_observed)
      out.paragraph(6, "not observed: " + missing, Tone::kQuiet, {}, 2);
  }
}

void add_artefacts(MarkdownDocument& document, const MarkdownText& text, const Report& report) {
  constexpr std::size_t kMostScenarios = 8, kMostRows = 20;
  std::size_t shown = 0;
  for (const ScenarioReport& scenario : report.scenarios) {
    const auto variants = with_artefact(scenario);
    if (variants.empty()) continue;
    if (shown++ == kMostScenarios) break;
    document.piece(report.scenarios.size() == 1
                       ? "### Artefacts"
                       : "### Artefacts of " + text.code(scenario.name, 80));
    document.table({"variant", "what", "version", "commit", "hash", "where"});
    for (const VariantReport* variant : variants) {
      const verdict::ArtefactIdentity& is = *variant->artefact;
      document.row({text.code(variant->name, 80), text.code(is.kind + " " + is.name, 120),
                    text.code(is.version, 80), text.code(is.commit.substr(0, 12), 40),
                    text.code(is.hash.substr(0, 12), 40), text.code(is.path, 160)});
    }
    for (const ArtefactDifference& difference : artefact_differences(scenario)) {
      document.piece(text.code(difference.b, 80) + " against " + text.code(difference.a, 80) +
                     ": " + text.prose(difference_text(difference)));
      if (!difference.lines.empty())
        document.table({"what", text.code(difference.a, 80), text.code(difference.b, 80)});
      for (std::size_t i = 0; i < difference.lines.size(); ++i) {
        if (i == kMostRows) {
          document.begin_details(fmt::format("and {} more", difference.lines.size() - i));
          document.table({"what", text.code(difference.a, 80), text.code(difference.b, 80)});
        }
        const Line& line = difference.lines[i];
        document.row(
            {text.code(subject(line), 120), text.code(line.a, 160), text.code(line.b, 160)});
      }
      document.end_details();
      for (const std::string& missing : difference.not_observed)
        document.item("not observed: " + text.code(missing));
    }
  }
}

}  // namespace warmgate::reports
