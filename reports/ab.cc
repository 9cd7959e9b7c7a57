#include "reports/ab.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "harness/trace/vocabulary.h"
#include "reports/artefacts.h"
#include "reports/evidence.h"
#include "reports/sections.h"
#include "reports/words.h"

namespace warmgate::reports {
namespace {

constexpr std::size_t kLabel = 28;
constexpr const char* kUnseen = "-";

std::string joined(const std::vector<std::string>& items, std::string_view by) {
  std::string out;
  for (const std::string& item : items) out += (out.empty() ? "" : std::string(by)) + item;
  return out;
}

std::string outcome_of(const VariantReport& v) {
  const std::string disagreement = disagreement_text(v);
  if (!disagreement.empty()) return disagreement;
  const verdict::RunRecord* run = telling_run(v);
  return run ? outcome_text(*run) : "not run";
}

std::string behaviours_of(const VariantReport& v) {
  return v.behaviours.empty() ? "none" : joined(v.behaviours, " + ");
}

// What broke, in words; equal words of the repeats once.
std::set<std::string> broken(const VariantReport& v) {
  std::set<std::string> out;
  for (const verdict::RunRecord* run : v.runs) {
    for (const contract::Result& result : run->contracts) {
      if (result.state != contract::State::kBroken) continue;
      for (const FindingGroup& group : group_findings(result.findings))
        out.insert(result.contract + ": " + proof_text(group, run));
    }
  }
  return out;
}

std::optional<double> median(const VariantReport& v, const std::string& name) {
  std::vector<double> values;
  for (const verdict::RunRecord* run : v.runs) {
    const auto it = run->figures.find(name);
    if (it != run->figures.end()) values.push_back(it->second);
  }
  if (values.empty()) return std::nullopt;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::string unit_of(const VariantReport& v, const std::string& name) {
  for (const verdict::RunRecord* run : v.runs) {
    const auto it = run->figure_info.find(name);
    if (it != run->figure_info.end()) return it->second.unit;
  }
  return "";
}

std::set<std::string> members(const VariantReport& v, const std::string& name) {
  std::set<std::string> out;
  for (const verdict::RunRecord* run : v.runs) {
    const auto it = run->sets.find(name);
    if (it != run->sets.end()) out.insert(it->second.begin(), it->second.end());
  }
  return out;
}

std::set<std::string> names_of_sets(const VariantReport& v) {
  std::set<std::string> out;
  for (const verdict::RunRecord* run : v.runs) {
    for (const auto& [name, items] : run->sets) out.insert(name);
  }
  return out;
}

class Table {
 public:
  Table(Printer& out, const VariantReport& a, const VariantReport& b, Detail detail)
      : out_(out), a_(a), b_(b), detail_(detail) {
    // Wide enough for what stands in every comparison, if half the width allows it.
    const std::size_t wish = 2 + std::max({columns(out.clean(behaviours_of(a))),
                                           columns(out.clean(outcome_of(a))), std::size_t{22}});
    column_ = std::min(wish, (out.style().width - kLabel - 2) / 2);
  }

  void row(std::string_view label, const std::string& left, const std::string& right,
           const std::string& change = "", Tone tone = Tone::kPlain) {
    // A cell that does not fit beside the other goes below it.
    const bool fits = columns(out_.clean(left)) + 2 <= column_;
    std::string line =
        out_.cell(label, Tone::kPlain, kLabel) + out_.cell(left, Tone::kPlain, column_);
    if (fits) {
      line += out_.cell(right, Tone::kPlain, change.empty() ? 0 : column_);
    } else {
      out_.row(2, line);
      line = std::string(kLabel + column_, ' ') +
             out_.cell(right, Tone::kPlain, change.empty() ? 0 : column_);
    }
    out_.row(2, line + out_.cell(change, tone));
  }

  void head() {
    row("", a_.name, b_.name);
    row("behaviours", behaviours_of(a_), behaviours_of(b_));
    row("runs", std::to_string(a_.runs.size()), std::to_string(b_.runs.size()));
  }

  // What either side showed; the names of its figures are kept, so that figures() need not repeat
  // them.
  void evidence(const EvidenceTable& table) {
    for (const EvidenceRow& line : table.rows) {
      if (!line.unit.empty()) told_.insert(line.name);
      if (!line.observed()) continue;
      const EvidenceCell &left = line.cells[0], &right = line.cells[1];
      row(line.label, left.observed() ? left.text : kUnseen,
          right.observed() ? right.text : kUnseen, change(left.value, right.value),
          change_tone(line.name, left.value, right.value));
    }
  }

  // Whoever reads a table with a dash in it wants to know why.
  void unobserved(const EvidenceTable& table) {
    bool headed = false;
    for (const Unseen& one : unseen(table)) {
      if (!headed) out_.row(2, out_.cell("not observed", Tone::kStrong));
      headed = true;
      std::string sides;
      for (const std::size_t side : one.sides)
        sides += (sides.empty() ? "" : ",") + table.sides[side];
      out_.paragraph(4, joined(one.labels, ", "), Tone::kQuiet,
                     out_.cell(sides + ": " + one.why + ": ", Tone::kPlain), 2,
                     columns(out_.clean(sides + one.why)) + 2);
    }
  }

  void excerpts(const EvidenceTable& table) {
    for (const LogExcerpt& excerpt : table.excerpts) {
      out_.row(2, out_.cell("log of " + table.sides[excerpt.side], Tone::kStrong) + "  " +
                      out_.cell(excerpt.source, Tone::kQuiet));
      for (std::size_t i = 0; i < excerpt.lines.size(); ++i) {
        const bool fault = excerpt.fault == i;
        const std::string line =
            shorten(out_.clean(excerpt.lines[i]), out_.style().width - 6, out_.style().charset);
        out_.row(4, out_.cell(fault ? "> " : "  ", Tone::kBad) +
                        out_.cell(line, fault ? Tone::kPlain : Tone::kQuiet));
      }
    }
  }

  void findings() {
    const std::set<std::string> left = broken(a_), right = broken(b_);
    if (left.empty() && right.empty()) return;
    out_.row(2, out_.cell("findings", Tone::kStrong));
    list("only " + a_.name, left, right);
    list("only " + b_.name, right, left);
    std::size_t both = 0;
    for (const std::string& text : left) both += right.count(text);
    if (both > 0)
      out_.row(4, out_.cell(fmt::format("both: {} more, the same", both), Tone::kQuiet));
  }

  void sets() {
    std::set<std::string> names = names_of_sets(a_);
    names.merge(names_of_sets(b_));
    bool headed = false;
    for (const std::string& name : names) {
      const std::set<std::string> left = members(a_, name), right = members(b_, name);
      if (left == right && detail_ != Detail::kVerbose) continue;
      if (!headed) out_.row(2, out_.cell("counts", Tone::kStrong));
      headed = true;
      std::size_t gone = 0, fresh = 0;
      for (const std::string& m : left) gone += right.count(m) == 0 ? 1 : 0;
      for (const std::string& m : right) fresh += left.count(m) == 0 ? 1 : 0;
      const bool seen_a = names_of_sets(a_).count(name) > 0,
                 seen_b = names_of_sets(b_).count(name) > 0;
      row(name, seen_a ? std::to_string(left.size()) : "-",
          seen_b ? std::to_string(right.size()) : "-",
          seen_a && seen_b && left != right ? fmt::format("{} gone, {} new", gone, fresh) : "");
      if (detail_ != Detail::kVerbose) continue;
      for (const std::string& m : left) {
        if (right.count(m) == 0) out_.paragraph(4, "- " + m, Tone::kQuiet);
      }
      for (const std::string& m : right) {
        if (left.count(m) == 0) out_.paragraph(4, "+ " + m, Tone::kQuiet);
      }
    }
  }

  void figures() {
    bool headed = false;
    for (const std::string& name : figure_names()) {
      // Rounded figures that look alike would hide what differs.
      const bool exact = detail_ == Detail::kVerbose || looks_alike(name);
      const auto left = median(a_, name), right = median(b_, name);
      if (detail_ != Detail::kVerbose && (left == right || told_.count(name) > 0)) continue;
      if (!headed) out_.row(2, out_.cell("figures", Tone::kStrong));
      headed = true;
      row(name, left ? figure_text(name, *left, unit_of(a_, name), exact) : "-",
          right ? figure_text(name, *right, unit_of(b_, name), exact) : "-", change(left, right),
          change_tone(name, left, right));
    }
  }

 private:
  bool looks_alike(const std::string& name) const {
    const auto left = median(a_, name), right = median(b_, name);
    return left && right && *left != *right &&
           figure_text(name, *left, "", false) == figure_text(name, *right, "", false);
  }

  std::vector<std::string> figure_names() const {
    std::set<std::string> present;
    for (const VariantReport* v : {&a_, &b_}) {
      for (const verdict::RunRecord* run : v->runs) {
        for (const auto& [name, value] : run->figures) present.insert(name);
      }
    }
    std::vector<std::string> out;
    for (const trace::FigureRule& rule : trace::figures()) {
      if (present.erase(std::string(rule.name)) > 0) out.emplace_back(rule.name);
    }
    out.insert(out.end(), present.begin(), present.end());
    return out;
  }

  static std::string change(const std::optional<double>& a, const std::optional<double>& b) {
    if (!a || !b || *a == *b || *a == 0) return "";
    return fmt::format("{:+.2f} %", (*b / *a - 1) * 100);
  }

  // Times move by themselves from run to run and get no colour.
  static Tone change_tone(const std::string& name, const std::optional<double>& a,
                          const std::optional<double>& b) {
    const trace::FigureRule* rule = trace::find_figure(name);
    if (!a || !b || !rule || rule->unit == "s" || name == "peak_rss_bytes" ||
        rule->better == trace::Direction::kNone)
      return Tone::kQuiet;
    const bool higher = *b > *a;
    return higher == (rule->better == trace::Direction::kHigher) ? Tone::kGood : Tone::kBad;
  }

  void list(const std::string& label, const std::set<std::string>& side,
            const std::set<std::string>& other) {
    const std::size_t most = detail_ == Detail::kVerbose ? 1000 : 6;
    std::size_t shown = 0, left_out = 0;
    for (const std::string& text : side) {
      if (other.count(text) > 0) continue;
      if (shown++ >= most) {
        ++left_out;
        continue;
      }
      out_.paragraph(4, text, Tone::kPlain, out_.cell(label + ":", Tone::kStrong) + " ",
                     columns(out_.clean(label)) + 2);
    }
    if (left_out > 0)
      out_.row(4, out_.cell(fmt::format("{}: {} more; --verbose shows them", label, left_out),
                            Tone::kQuiet));
  }

  Printer& out_;
  const VariantReport& a_;
  const VariantReport& b_;
  Detail detail_;
  std::size_t column_;
  std::set<std::string> told_;
};

}  // namespace

std::string ab_report(const Report& report, const Style& style, Detail detail) {
  Printer out(style, report.secrets);
  if (report.scenarios.empty() || report.scenarios.front().variants.size() < 2) {
    print_closing(out, report, detail);
    return out.take();
  }
  const ScenarioReport& s = report.scenarios.front();
  const VariantReport &a = s.variants[0], &b = s.variants[1];
  out.row(0, out.cell(verdict::to_string(s.verdict), tone_of(s.verdict)) + "  " +
                 out.cell(fmt::format("{}: {} against {}", s.name, b.name, a.name), Tone::kStrong) +
                 "  " + out.cell(s.path, Tone::kQuiet));
  if (!s.reason.empty()) out.paragraph(2, s.reason);
  print_artefacts(out, s, detail);
  Table table(out, a, b, detail);
  if (detail != Detail::kQuiet) {
    const EvidenceTable evidence = evidence_of(s);
    table.head();
    table.evidence(evidence);
    table.findings();
    table.excerpts(evidence);
    table.sets();
    table.figures();
    table.unobserved(evidence);
    print_not_observed(out, s, detail);
    print_comparisons(out, s, detail);
  }
  bool headed = false;
  for (const verdict::Check& check : s.checks) {
    if (check.verdict == verdict::Verdict::kPass && detail != Detail::kVerbose) continue;
    if (!headed) out.row(2, out.cell("what decided", Tone::kStrong));
    headed = true;
    print_check(out, 4, check, nullptr);
  }
  for (const VariantReport* v : {&a, &b}) {
    const verdict::RunRecord* run = telling_run(*v);
    if (run && wants_command(*v) && !run->reproduce.empty())
      out.command(2, "repeat " + v->name + ":", run->reproduce);
  }
  out.blank();
  print_closing(out, report, detail);
  if (!report.command.empty()) out.command(0, "repeat all:", report.command);
  return out.take();
}

}  // namespace warmgate::reports
