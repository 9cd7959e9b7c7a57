#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "harness/cli/explain_report.h"

namespace warmgate::cli {

std::string value_text(const nlohmann::json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_integer()) return reports::grouped(value.get<std::int64_t>());
  if (value.is_null()) return "-";
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string seconds_text(const std::optional<double>& seconds) {
  return seconds ? reports::duration_text(*seconds) : "-";
}

std::string hint(const Explanation& explanation) {
  using Kind = explain::Answer::Kind;
  const Kind kind = explanation.start.answer.kind;
  if (explanation.end_known || (kind != Kind::kIncomplete && kind != Kind::kUnclear)) return "";
  return "the log just ends: --ended N says how the process did, with its exit status as a shell, "
         "docker inspect or kubectl describe pod tell it (137: killed), once it has ended";
}

namespace {

using explain::Answer;
using explain::Moment;
using explain::Reading;
using reports::Detail;
using reports::Printer;
using reports::Tone;

Tone tone_of(Answer::Kind kind) {
  switch (kind) {
    case Answer::Kind::kStarts:
      return Tone::kGood;
    case Answer::Kind::kMine:
    case Answer::Kind::kInfrastructure:
    case Answer::Kind::kKnown:
      return Tone::kBad;
    case Answer::Kind::kUnclear:
    case Answer::Kind::kIncomplete:
      return Tone::kDoubt;
  }
  return Tone::kPlain;
}

std::string place_of(const Reading& reading, int source, std::int64_t line) {
  if (source < 0) return "";
  const auto index = static_cast<std::size_t>(source);
  return reading.sources.size() > 1 && index < reading.sources.size()
             ? fmt::format("{}:{}", reading.sources[index], line)
             : fmt::format("line {}", line);
}

class Report {
 public:
  Report(Printer& out, const Explanation& explanation, Detail detail)
      : out_(out), all_(explanation), start_(explanation.start), detail_(detail) {}

  void write() {
    answer();
    identity();
    if (detail_ == Detail::kQuiet) return;
    if (const std::string text = hint(all_); !text.empty())
      out_.paragraph(0, text, Tone::kQuiet, out_.cell("hint: ", Tone::kDoubt), 2, 4);
    phases();
    figures();
    failure();
    silence();
    outside();
    known();
    left_out();
    not_placed();
    if (all_.comparison) {
      heading("against the other log (A: the other, B: this one)");
      print_comparison(out_, all_);
    }
    again();
  }

 private:
  const Reading& reading() const { return start_.reading; }

  void heading(std::string_view text) {
    out_.blank();
    out_.row(0, out_.cell(text, Tone::kStrong));
  }

  void answer() {
    const Answer& answer = start_.answer;
    const bool doubtful = !answer.certain && (answer.kind == Answer::Kind::kInfrastructure ||
                                              answer.kind == Answer::Kind::kKnown);
    const std::string lead =
        std::string(explain::to_string(answer.kind)) + (doubtful ? ", probably: " : ": ");
    // One line whatever its length: scripts read it.
    out_.row(0, out_.cell(lead, tone_of(answer.kind)) + out_.cell(answer.reason));
  }

  void identity() {
    const Reading& r = reading();
    std::string line = r.engine.empty() ? "engine not recognised" : r.engine;
    if (!r.engine.empty()) line += " " + r.version.value_or("(version not printed)");
    line += fmt::format("{}{}", out_.dot(), r.outcome);
    if (r.failing_phase)
      line += " in " + *r.failing_phase;
    else if (!r.last_phase.empty())
      line += fmt::format(", last phase {}", r.last_phase);
    line += fmt::format("{}{} lines", out_.dot(), reports::grouped(r.lines));
    if (r.serving > 0) line += fmt::format(", {} of serving", reports::grouped(r.serving));
    out_.paragraph(0, line, Tone::kQuiet);
    for (const std::string& trouble : start_.troubles)
      out_.paragraph(0, trouble, Tone::kDoubt, out_.cell("not whole: ", Tone::kDoubt), 2, 9);
  }

  void phases() {
    const Reading& r = reading();
    if (r.phases.empty()) return;
    heading("phases");
    const bool several = r.sources.size() > 1;
    std::size_t shown = 0;
    for (const explain::PhaseSpan& span : r.phases) {
      if (++shown > 40 && detail_ != Detail::kVerbose) {
        out_.row(2, out_.cell(fmt::format("and {} more; -v shows all", r.phases.size() - 40),
                              Tone::kQuiet));
        break;
      }
      std::optional<double> took;
      if (span.begin_s && span.end_s) took = *span.end_s - *span.begin_s;
      const bool failing = r.failing_phase == span.phase && span.last_line >= last_cause_line(span);
      out_.row(2, out_.cell(span.phase, failing ? Tone::kBad : Tone::kPlain, 12) +
                      out_.cell(seconds_text(took), Tone::kPlain, 12) +
                      out_.cell(fmt::format("lines {}-{}", span.first_line, span.last_line),
                                Tone::kQuiet, several ? 20 : 0) +
                      (several ? out_.cell(source_name(span.source), Tone::kQuiet) : ""));
    }
  }

  // The phase is coloured where the first cause stands, not each time it recurs.
  std::int64_t last_cause_line(const explain::PhaseSpan& span) const {
    for (const Moment& m : reading().moments)
      if (m.sort == "cause" && m.source == span.source) return m.line;
    return 0;
  }

  std::string source_name(int source) const {
    const auto index = static_cast<std::size_t>(source);
    return index < reading().sources.size() ? reading().sources[index] : "";
  }

  void figures() {
    if (reading().figures.empty()) return;
    heading("figures");
    std::size_t widest = 0;
    for (const auto& [name, value] : reading().figures) widest = std::max(widest, name.size());
    for (const auto& [name, value] : reading().figures)
      out_.row(2, out_.cell(name, Tone::kPlain, widest + 2) + out_.cell(value_text(value)));
  }

  void moments(const char* sort, Tone tone, std::size_t most,
               const Moment* said_already = nullptr) {
    std::size_t shown = 0;
    std::set<std::string> said;
    for (const Moment& moment : reading().moments) {
      if (moment.sort != sort || (said_already && &moment == said_already)) continue;
      // Ranks say the same; the first of each is enough.
      if (!said.insert(moment.worker + "\n" + explain::without_numbers(moment.text)).second)
        continue;
      if (++shown > most && detail_ != Detail::kVerbose) continue;
      moment_line(moment, sort, tone);
    }
    if (shown > most && detail_ != Detail::kVerbose)
      out_.row(2, out_.cell(fmt::format("and {} more of sort {}; -v shows all", shown - most, sort),
                            Tone::kQuiet));
  }

  void moment_line(const Moment& moment, std::string_view label, Tone tone) {
    const std::string place = place_of(reading(), moment.source, moment.line);
    const std::string who = moment.worker.empty() ? "" : moment.worker + ": ";
    const std::string lead = fmt::format("{:<10}", label);
    out_.paragraph(2, fmt::format("{}{} ({})", who, moment.text, place), Tone::kPlain,
                   out_.cell(lead, tone, 10), 10);
  }

  // The line that the root exception's message is of.
  const Moment* root_moment() const {
    const Reading& r = reading();
    for (const Moment& moment : r.moments)
      if (moment.sort == "cause" && !r.message.empty() &&
          moment.text.find(r.message) != std::string::npos)
        return &moment;
    return nullptr;
  }

  static bool only_victims(const Reading& r) {
    const auto count = [&](const char* sort) {
      const auto it = r.moment_counts.find(sort);
      return it == r.moment_counts.end() ? 0 : static_cast<long>(it->second);
    };
    return count("cause") == 0 && count("victim") > 0;
  }

  void failure() {
    const Reading& r = reading();
    if (r.outcome == "passed" && r.moment_counts.count("cause") == 0) return;
    const bool any = std::any_of(r.moments.begin(), r.moments.end(), [](const Moment& m) {
      return m.sort == "cause" || m.sort == "echo" || m.sort == "victim";
    });
    // "no progress" has a section of its own.
    if (!any && (!r.fingerprint || r.silence)) return;
    heading("what failed");
    if (r.failing_worker)
      out_.row(2,
               out_.cell("first", Tone::kStrong, 10) +
                   out_.cell(*r.failing_worker +
                             (r.failing_rank ? fmt::format(" (rank {})", *r.failing_rank) : "")));
    if (r.failing_workers.size() > 1) {
      std::string names;
      for (const std::string& name : r.failing_workers) names += (names.empty() ? "" : ", ") + name;
      out_.paragraph(2, names, Tone::kPlain, out_.cell("same time", Tone::kDoubt, 10), 10);
    }
    const Moment* const root = root_moment();
    if (r.fingerprint) {
      const std::string type = r.fingerprint->type.substr(0, r.fingerprint->type.find(':'));
      std::string text = r.message.find(type) != std::string::npos || r.message.empty()
                             ? (r.message.empty() ? r.fingerprint->type : r.message)
                             : type + ": " + r.message;
      if (root) text += fmt::format(" ({})", place_of(r, root->source, root->line));
      // The one that fell first may have said nothing; then this is what another was left with.
      const bool others = root == nullptr && r.failing_worker && only_victims(r);
      if (others) text = "it said nothing; what others were left with: " + text;
      out_.paragraph(2, text, Tone::kPlain, out_.cell("root", Tone::kBad, 10), 10);
      for (const explain::Fingerprint& frame : r.frames)
        out_.row(12, out_.cell(fmt::format("{}{}", frame.function,
                                           frame.file.empty() ? "" : " (" + frame.file + ")"),
                               Tone::kQuiet));
      if (r.frames.empty() && !r.fingerprint->function.empty())
        out_.row(12, out_.cell(fmt::format("{} ({})", r.fingerprint->function, r.fingerprint->file),
                               Tone::kQuiet));
    }
    moments("cause", Tone::kBad, 6, root);
    moments("victim", Tone::kQuiet, 3);
    moments("echo", Tone::kQuiet, 3);
  }

  void silence() {
    const Reading& r = reading();
    if (!r.silence) return;
    heading("where it stands still");
    const std::string place = place_of(r, r.silence->source, r.silence->since_line);
    out_.paragraph(2,
                   fmt::format("no progress for {}; the last was {}{} ({})",
                               reports::duration_text(r.silence->seconds),
                               r.silence->last_worker.empty() ? "" : r.silence->last_worker + ": ",
                               r.silence->last_text, place));
    if (r.silence->missing.empty()) return;
    std::string names;
    for (const std::string& name : r.silence->missing) names += (names.empty() ? "" : ", ") + name;
    out_.paragraph(2, fmt::format("without a milestone that others passed: {}", names));
  }

  void outside() {
    const auto& causes = start_.answer.outside;
    if (causes.empty()) return;
    heading("from outside");
    for (const explain::OutsideCause& cause : causes) {
      const std::string place = place_of(reading(), cause.source, cause.line);
      out_.paragraph(2,
                     fmt::format("{}{}: {}{}", cause.rule->reason,
                                 cause.after_failure ? ", after the failure" : "", cause.text,
                                 place.empty() ? "" : " (" + place + ")"),
                     Tone::kPlain,
                     out_.cell(cause.after_failure   ? "after"
                               : cause.rule->certain ? "certain"
                                                     : "likely",
                               cause.after_failure ? Tone::kQuiet : Tone::kBad, 10),
                     10);
      if (!cause.rule->advice.empty()) out_.paragraph(12, cause.rule->advice, Tone::kQuiet);
    }
  }

  void known() {
    if (start_.answer.known.empty()) return;
    heading("known regressions");
    for (const explain::KnownMatch& match : start_.answer.known) {
      const explain::Known& k = *match.known;
      out_.paragraph(2, k.about, Tone::kPlain, out_.cell(k.name + ": ", Tone::kStrong), 2,
                     k.name.size());
      if (!match.version_seen)
        out_.paragraph(4, fmt::format("in versions {}; the log does not print one", k.versions),
                       Tone::kDoubt);
      if (!k.fix.empty())
        out_.row(4, out_.cell("fix", Tone::kQuiet, 12) + out_.cell(explain::link_of(k.fix, true)) +
                        (k.fixed_in.empty() ? "" : out_.cell(" in " + k.fixed_in)));
      if (!k.issue.empty())
        out_.row(
            4, out_.cell("issue", Tone::kQuiet, 12) + out_.cell(explain::link_of(k.issue, false)));
      for (const std::string& more : k.see)
        out_.row(4, out_.cell("see", Tone::kQuiet, 12) + out_.cell(explain::link_of(more, false)));
      if (!k.workaround.empty())
        out_.paragraph(4, k.workaround, Tone::kPlain, out_.cell("until then", Tone::kQuiet, 12),
                       12);
    }
  }

  void left_out() {
    const auto has = [&](const char* sort) {
      return std::any_of(reading().moments.begin(), reading().moments.end(),
                         [&](const Moment& m) { return m.sort == sort; });
    };
    if (!has("skip") && !has("swallowed") && !has("compile")) return;
    heading("left out and swallowed");
    moments("skip", Tone::kDoubt, 8);
    moments("swallowed", Tone::kDoubt, 8);
    moments("compile", Tone::kDoubt, 8);
  }

  void not_placed() {
    const Reading& r = reading();
    if (r.unplaced == 0) return;
    out_.blank();
    out_.paragraph(0,
                   fmt::format("{} of {} lines have no place in the grammar and were not judged{}",
                               reports::grouped(r.unplaced), reports::grouped(r.lines),
                               detail_ == Detail::kVerbose ? ":" : " (-v shows the first)"),
                   Tone::kQuiet);
    if (detail_ != Detail::kVerbose) return;
    for (const explain::UnplacedLine& line : r.unplaced_lines)
      out_.row(2, out_.cell(place_of(r, line.source, line.line), Tone::kQuiet, 12) +
                      out_.cell(reports::shorten(reports::printable(line.text), 200)));
  }

  void again() {
    const explain::Launch& launch = start_.launch;
    const bool failed = reading().outcome != "passed" && reading().outcome != "incomplete";
    if (!failed) return;
    heading("to reproduce");
    if (launch.found()) {
      std::string words;
      for (const std::string& word : launch.program) words += word + " ";
      words += launch.model;
      for (const std::string& word : launch.args) words += " " + quoted(word);
      out_.command(2, fmt::format("from {}:", launch.from), words);
    } else {
      out_.paragraph(2, "the log does not say how it was started", Tone::kQuiet);
    }
    if (!all_.skeleton.empty()) {
      out_.command(2, "run:", "warmgate run " + quoted(all_.skeleton));
    } else {
      std::string logs;
      for (const std::string& log : all_.logs) logs += " " + quoted(log);
      out_.command(2, "scenario:", "warmgate explain" + logs + " --scenario repro.yaml");
    }
  }

  static std::string quoted(const std::string& word) {
    const bool plain = !word.empty() && word.find_first_not_of(
                                            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                            "0123456789_-./:=,@%+") == std::string::npos;
    if (plain) return word;
    std::string out = "'";
    for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return out + "'";
  }

  Printer& out_;
  const Explanation& all_;
  const Explained& start_;
  Detail detail_;
};

}  // namespace

std::string explanation_text(const Explanation& explanation, const reports::Style& style,
                             reports::Detail detail, const std::vector<std::string>& secrets) {
  Printer out(style, secrets);
  Report(out, explanation, detail).write();
  return out.take();
}

}  // namespace warmgate::cli
