// protocol: hello first, phases paired and in the declared order, lines legal, bye. What a worker
// owed and could not deliver because it died is not held against it here: `starts` names the death.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "harness/contract/builtin.h"
#include "harness/contract/cause.h"
#include "harness/contract/fold.h"
#include "harness/contract/view.h"

namespace warmgate::contract {
namespace {

constexpr const char* kProtocol = "protocol";

struct Source {
  std::vector<std::size_t> events;  // in the order of its lines, whatever its clock says
  std::set<int> ranks;
  std::size_t hellos = 0, byes = 0;
};

// Which workers did not end by themselves with code 0, by rank; -1 in it: one of unknown rank.
std::set<int> died(const View& view) {
  std::set<int> out;
  const int unnamed = view.trace().world <= 1 ? 0 : -1;
  for (std::size_t i = 0; i < view.size(); ++i) {
    const trace::Event& e = view.event(i);
    if (e.ev == "process_end" &&
        (e.flag("killed_by_us") || e.num("signal") != 0 || e.num("exit_code") != 0))
      out.insert(rank_of(e, unnamed));
    if (e.ev == "deadline") out.insert(-1);
  }
  return out;
}

class ProtocolJudge {
 public:
  explicit ProtocolJudge(const Context& context)
      : view_(view_of(context)), trace_(context.trace), died_(died(view_)) {}

  Result run() {
    lines();
    collect();
    if (sources_.empty() && trace_.bad_lines.empty() && view_.emits("http"))
      return not_applicable(kProtocol, "a server speaks no protocol of ours");
    hellos();
    for (auto& [name, source] : sources_) sequence(name, source);
    return conclude(kProtocol, std::move(findings_), State::kKept,
                    died_.empty() ? "" : "a worker that died owes no bye and no phase_end");
  }

 private:
  void add(std::string key, int rank, std::string expected, std::string seen, std::string message,
           std::vector<std::size_t> events, std::string phase = "") {
    Finding f;
    f.contract = kProtocol;
    f.key = std::move(key);
    f.rank = rank;
    f.expected = std::move(expected);
    f.seen = std::move(seen);
    f.message = std::move(message);
    f.events = std::move(events);
    f.phase = std::move(phase);
    findings_.push_back(std::move(f));
  }

  void lines() {
    if (!trace_.bad_lines.empty()) {
      const trace::BadLine& first = trace_.bad_lines.front();
      add("bad_lines", -1, "every line one legal event", first.why,
          fmt::format("{} of {} is not a legal event: {}", fmt::format("line {}", first.line),
                      first.source, first.why),
          {});
      findings_.back().count = trace_.bad_lines.size();
      auto& list = findings_.back().detail["lines"] = nlohmann::json::array();
      for (const trace::BadLine& bad : trace_.bad_lines) {
        if (list.size() >= 10) break;
        list.push_back({{"source", bad.source},
                        {"line", bad.line},
                        {"why", bad.why},
                        {"excerpt", bad.excerpt}});
      }
    }
    for (std::size_t i = 0; i < view_.size(); ++i) {
      const trace::Event& e = view_.event(i);
      if (e.ev == "fault" && is_writer_limit(e))
        add("limits", rank_of(e, -1), "lines of at most 1 MiB, at most 20,000 of them",
            std::string(text(e, "type")), "the worker dropped events: " + e.str("message"), {i});
    }
  }

  void collect() {
    for (std::size_t i = 0; i < view_.size(); ++i) {
      const trace::Event& e = view_.event(i);
      // A plugin in somebody's process owes nothing: it may not be there to its end.
      if (e.src != "channel") continue;
      Source& source = sources_[e.source];
      source.events.push_back(i);
      if (e.rank && *e.rank >= 0) source.ranks.insert(*e.rank);
      if (e.ev == "hello") ++source.hellos;
      if (e.ev == "bye") ++source.byes;
    }
    for (auto& [name, source] : sources_) {
      std::stable_sort(
          source.events.begin(), source.events.end(),
          [&](std::size_t a, std::size_t b) { return view_.event(a).line < view_.event(b).line; });
    }
  }

  // Did the worker behind this source die? Its ranks decide; a source that named none belongs to
  // any worker that did.
  bool source_died(const std::string& name, const Source& source) const {
    if (died_.empty()) return false;
    if (died_.count(-1) != 0 || trace_.world <= 1) return true;
    if (source.ranks.empty())
      return std::any_of(died_.begin(), died_.end(),
                         [&](int rank) { return name == fmt::format("rank{}", rank); });
    return std::any_of(source.ranks.begin(), source.ranks.end(),
                       [&](int rank) { return died_.count(rank) != 0; });
  }

  void hellos() {
    // How many workers there are is a claim of the harness; a wild one must not cost memory.
    const int world = std::clamp(trace_.world, 1, 1024);
    for (int rank = 0; rank < world; ++rank) {
      if (died_.count(rank) != 0 || died_.count(-1) != 0) continue;
      const std::string own = fmt::format("rank{}", rank);
      const bool seen = std::any_of(sources_.begin(), sources_.end(), [&](const auto& entry) {
        const auto& [name, source] = entry;
        return source.hellos > 0 && (world == 1 || name == own || source.ranks.count(rank) != 0);
      });
      if (!seen)
        add("hello", rank, "hello as the first line", "no hello",
            fmt::format("worker {} ended without ever saying hello", rank), {});
    }
  }

  void sequence(const std::string& name, const Source& source) {
    const std::size_t first = source.events.front();
    const int rank = source.ranks.size() == 1 ? *source.ranks.begin() : -1;
    if (view_.event(first).ev != "hello" && source.hellos + source.byes > 0)
      add("hello", rank, "hello as the first line", view_.event(first).ev,
          fmt::format("{} spoke of '{}' before it said hello", name, view_.event(first).ev),
          {first});
    std::map<int, std::string> open;          // per rank: the phase that has begun
    std::map<int, std::size_t> opened, last;  // its event; the order reached, 1-based
    std::set<std::pair<int, std::string>> seen;
    bool gone = false;
    for (std::size_t i : source.events) {
      const trace::Event& e = view_.event(i);
      const int r = rank_of(e, -1);
      if (gone && source.hellos == 1 && e.ev != "bye") {
        add("bye", r, "nothing after bye", e.ev,
            fmt::format("{} sent '{}' after its bye", name, e.ev), {i});
        gone = false;  // once is enough
      }
      if (e.ev == "bye") gone = true;
      if (e.ev != "phase_begin" && e.ev != "phase_end") continue;
      const std::string phase(text(e, "phase"));
      if (e.ev == "phase_end") {
        if (open[r] == phase && !phase.empty()) {
          open[r].clear();
          continue;
        }
        add("order/" + phase, r, "phase_end of the phase that began",
            open[r].empty() ? fmt::format("{} ended, none had begun", phase)
                            : fmt::format("{} ended within {}", phase, open[r]),
            fmt::format("{} ended phase '{}' that had not begun", name, phase), {i}, phase);
        continue;
      }
      begin(name, phase, r, i, seen, last, open);
      open[r] = phase;
      opened[r] = i;
    }
    if (source_died(name, source)) return;
    for (const auto& [r, phase] : open) {
      if (!phase.empty())
        add("end/" + phase, r, "phase_end " + phase, "none",
            fmt::format("{} ended with code 0, but its phase {} never did", name, phase),
            {opened[r]}, phase);
    }
    if (source.hellos > source.byes)
      add("bye", rank, "bye before the end",
          source.hellos == 1 ? "none" : fmt::format("{} of {}", source.byes, source.hellos),
          fmt::format("{} ended without bye", name), {source.events.back()},
          std::string(view_.phase(source.events.back())));
  }

  void begin(const std::string& name, const std::string& phase, int r, std::size_t i,
             std::set<std::pair<int, std::string>>& seen, std::map<int, std::size_t>& last,
             const std::map<int, std::string>& open) {
    const auto& declared =
        trace_.declared_phases.empty() ? view_.declared() : trace_.declared_phases;
    const auto at = std::find(declared.begin(), declared.end(), phase);
    const auto was = open.find(r);
    const std::size_t order = static_cast<std::size_t>(at - declared.begin()) + 1;
    if (at == declared.end()) {
      add("order/" + phase, r, fmt::format("one of {}", fmt::join(declared, " ")), phase,
          fmt::format("{} began phase '{}', which this target does not declare", name, phase), {i},
          phase);
    } else if (was != open.end() && !was->second.empty()) {
      add("order/" + phase, r, fmt::format("phase_end {} first", was->second),
          "phase_begin " + phase,
          fmt::format("{} began phase {} within phase {}", name, phase, was->second), {i}, phase);
    } else if (!seen.insert({r, phase}).second) {
      add("order/" + phase, r, "each phase once", phase + " again",
          fmt::format("{} began phase {} a second time", name, phase), {i}, phase);
    } else if (order < last[r]) {
      add("order/" + phase, r, fmt::format("{} before {}", phase, declared[last[r] - 1]),
          "after it",
          fmt::format("{} began phase {} after phase {}", name, phase, declared[last[r] - 1]), {i},
          phase);
    }
    if (at != declared.end()) last[r] = std::max(last[r], order);
  }

  const View& view_;
  const trace::Trace& trace_;
  std::set<int> died_;
  std::map<std::string, Source> sources_;
  std::vector<Finding> findings_;
};

class Protocol : public Contract {
 public:
  std::string_view name() const override { return kProtocol; }
  std::string_view promise() const override {
    return "hello first, every phase begun is ended, phases in the declared order, lines legal, "
           "bye";
  }
  std::vector<std::string> needs() const override { return {}; }
  Result judge(const Context& context) const override { return ProtocolJudge(context).run(); }
};

}  // namespace

const Contract& protocol_contract() {
  static const Protocol contract;
  return contract;
}

}  // namespace warmgate::contract
