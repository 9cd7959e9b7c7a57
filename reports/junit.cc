#include "reports/junit.h"

#include <fmt/format.h>

#include <algorithm>

#include "reports/ansi.h"
#include "reports/evidence.h"
#include "reports/text.h"
#include "reports/words.h"

namespace warmgate::reports {
namespace {

using verdict::Verdict;

struct Case {
  std::string name, classname;
  Verdict verdict = Verdict::kPass;
  std::string type;      // of a failure or error
  std::string message;   // one line
  std::string body;      // lines
  std::string evidence;  // elements of the test case that say what was seen
  double seconds = 0;
};

enum class Mark { kNone, kFailure, kError, kSkipped };

Mark mark_of(Verdict verdict, const std::set<Verdict>& soft) {
  if (verdict == Verdict::kPass) return Mark::kNone;
  if (verdict == Verdict::kSkip || soft.count(verdict) > 0) return Mark::kSkipped;
  return verdict == Verdict::kFail ? Mark::kFailure : Mark::kError;
}

std::string one_line(const std::string& text, const Report& report) {
  // Masked twice: colour in the middle of a secret hides it from the first go.
  return without_ci_commands(
      printable(mask(without_ansi(mask(text, report.secrets)), report.secrets)));
}

std::string check_line(const verdict::Check& check) {
  std::string line = fmt::format("{} {}", verdict::to_string(check.verdict), check.what);
  if (!check.expected.empty()) line += ": expected " + check.expected;
  if (!check.seen.empty()) line += (check.expected.empty() ? ": " : ", seen ") + check.seen;
  if (!check.note.empty()) line += " (" + check.note + ")";
  return line;
}

Case variant_case(const Report& report, const ScenarioReport& scenario,
                  const VariantReport& variant) {
  const auto line = [&](const std::string& text) { return one_line(text, report) + "\n"; };
  Case out;
  out.name = variant.name;
  out.classname = scenario.name;
  out.verdict = variant.verdict.verdict;
  for (const verdict::RunRecord* run : variant.runs) out.seconds += run->wall_s;
  const verdict::RunRecord* run = telling_run(variant);
  out.type = verdict::to_string(variant.verdict.verdict);
  out.message = variant.verdict.reason;
  if (run) {
    if (out.message.empty()) out.message = outcome_text(*run);
    out.body += line(outcome_text(*run) + (run->reason.empty() ? "" : ": " + run->reason));
    for (const contract::Result& result : run->contracts) {
      if (result.state != contract::State::kBroken) continue;
      for (const FindingGroup& group : group_findings(result.findings))
        out.body += line(result.contract + ": " + proof_text(group, run));
    }
  }
  for (const verdict::Check& check : variant.verdict.checks) {
    if (check.verdict != Verdict::kPass) out.body += line(check_line(check));
  }
  if (run && !run->reproduce.empty()) out.body += line("repeat: " + run->reproduce);
  return out;
}

// A comparison's table: what one side showed as its case's properties, the log around its fault and
// what was not observed as its output. Other reports have many cases, and no room.
std::string evidence_elements(const Report& report, const EvidenceTable& table, std::size_t side) {
  std::string properties, output;
  for (const EvidenceRow& row : table.rows) {
    const EvidenceCell& cell = row.cells[side];
    if (cell.observed()) {
      const std::string value =
          cell.value ? fmt::format("{:.15g}", *cell.value) : one_line(cell.text, report);
      properties += fmt::format("        <property name=\"{}\" value=\"{}\"/>\n",
                                xml_text(one_line(row.name, report)), xml_text(value));
    } else {
      output += fmt::format("not observed: {} ({})\n", row.name, cell.why);
    }
  }
  for (const LogExcerpt& excerpt : table.excerpts) {
    if (excerpt.side != side) continue;
    output += excerpt.source + "\n";
    for (const std::string& line : excerpt.lines) output += "| " + line + "\n";
  }
  std::string out;
  if (!properties.empty()) out += "      <properties>\n" + properties + "      </properties>\n";
  if (!output.empty()) {
    std::string lines;
    for (std::size_t at = 0; at < output.size();) {
      const std::size_t end = output.find('\n', at);
      lines += xml_text(one_line(output.substr(at, end - at), report)) + "\n";
      at = end + 1;
    }
    out += "      <system-out>" + lines + "</system-out>\n";
  }
  return out;
}

// What is wrong with a scenario as a whole; nothing if no check speaks.
std::vector<Case> scenario_cases(const Report& report, const ScenarioReport& scenario) {
  const auto line = [&](const std::string& text) { return one_line(text, report) + "\n"; };
  Case out;
  out.name = scenario.name;
  out.classname = scenario.name;
  for (const verdict::Check& check : scenario.checks) {
    if (check.verdict == Verdict::kPass) continue;
    if (out.verdict == Verdict::kPass || check.verdict == Verdict::kFail)
      out.verdict = check.verdict;
    if (out.message.empty()) out.message = check.what;
    out.body += line(check_line(check));
  }
  // A comparison that the verdict did not count against the scenario is not an error here either.
  if (scenario.verdict != Verdict::kPass) {
    for (const contract::Result& result : scenario.comparisons) {
      if (result.state != contract::State::kBroken) continue;
      for (const FindingGroup& group : group_findings(result.findings))
        out.body += line(result.contract + ": " + proof_text(group));
    }
  }
  const bool variants_explain =
      std::any_of(scenario.variants.begin(), scenario.variants.end(),
                  [&](const VariantReport& v) { return v.verdict.verdict == scenario.verdict; });
  if (out.verdict == Verdict::kPass && scenario.verdict != Verdict::kPass && !variants_explain) {
    out.verdict = scenario.verdict;
    out.message = scenario.reason;
  }
  if (out.verdict == Verdict::kPass) return {};
  out.type = verdict::to_string(out.verdict);
  return {out};
}

std::string attribute(const std::string& text, const Report& report) {
  return xml_text(one_line(text, report));
}

}  // namespace

std::string xml_text(std::string_view text) {
  std::string out;
  const std::string valid = valid_utf8(without_ansi(text));
  for (std::size_t i = 0; i < valid.size(); ++i) {
    const char c = valid[i];
    const auto byte = static_cast<unsigned char>(c);
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";  // also breaks up "]]>"
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&apos;";
        break;
      case '\n':
      case '\t':
        out += c;
        break;
      default:
        // XML 1.0 has no way to write these, not even as references. U+FFFE and U+FFFF likewise.
        if (byte < 0x20 || byte == 0x7f) {
          out += "\xef\xbf\xbd";
        } else if (byte == 0xef && valid.compare(i, 2, "\xef\xbf") == 0 && i + 2 < valid.size() &&
                   static_cast<unsigned char>(valid[i + 2]) >= 0xbe) {
          out += "\xef\xbf\xbd";
          i += 2;
        } else if (byte == 0xc2 && i + 1 < valid.size() &&
                   static_cast<unsigned char>(valid[i + 1]) < 0xa0) {
          out += "\xef\xbf\xbd";  // C1 controls: legal, yet terminals obey them
          i += 1;
        } else {
          out += c;
        }
    }
  }
  return out;
}

std::string junit_text(const Report& report) {
  std::string suites;
  int all_tests = 0, all_failures = 0, all_errors = 0, all_skipped = 0;
  for (const ScenarioReport& scenario : report.scenarios) {
    std::vector<Case> cases;
    for (const VariantReport& variant : scenario.variants)
      cases.push_back(variant_case(report, scenario, variant));
    if (report.verb == "ab") {
      const EvidenceTable table = evidence_of(scenario);
      for (std::size_t i = 0; i < cases.size(); ++i)
        cases[i].evidence = evidence_elements(report, table, i);
    }
    for (Case& extra : scenario_cases(report, scenario)) cases.push_back(std::move(extra));
    int failures = 0, errors = 0, skipped = 0;
    double seconds = 0;
    std::string body;
    for (const Case& c : cases) {
      const Mark mark = mark_of(c.verdict, report.soft);
      seconds += c.seconds;
      body += fmt::format(R"(    <testcase classname="{}" name="{}" file="{}" time="{:.3f}")",
                          attribute(c.classname, report), attribute(c.name, report),
                          attribute(scenario.path, report), c.seconds);
      if (mark == Mark::kNone && c.evidence.empty()) {
        body += "/>\n";
        continue;
      }
      // The order that the common schema asks for: properties, result, system-out.
      const std::size_t cut = std::min(c.evidence.find("      <system-out>"), c.evidence.size());
      body += ">\n" + c.evidence.substr(0, cut);
      const std::string message = attribute(c.message, report);
      if (mark == Mark::kSkipped) {
        ++skipped;
        const bool soft = c.verdict != Verdict::kSkip;
        body +=
            fmt::format("      <skipped message=\"{}{}\"/>\n", soft ? c.type + ": " : "", message);
      } else if (mark != Mark::kNone) {
        const char* tag = mark == Mark::kFailure ? "failure" : "error";
        ++(mark == Mark::kFailure ? failures : errors);
        body += fmt::format("      <{} type=\"{}\" message=\"{}\">{}</{}>\n", tag, c.type, message,
                            xml_text(c.body), tag);
      }
      body += c.evidence.substr(cut);
      body += "    </testcase>\n";
    }
    suites += fmt::format(
        "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" "
        "time=\"{:.3f}\">\n{}  </testsuite>\n",
        attribute(scenario.name, report), cases.size(), failures, errors, skipped, seconds, body);
    all_tests += static_cast<int>(cases.size());
    all_failures += failures;
    all_errors += errors;
    all_skipped += skipped;
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"warmgate {}\" tests=\"{}\" "
      "failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{:.3f}\">\n{}</testsuites>\n",
      attribute(report.verb, report), all_tests, all_failures, all_errors, all_skipped,
      report.wall_s, suites);
}

}  // namespace warmgate::reports
