// starts: every phase that began ends well on every rank. One failure has one finding, the first
// worker's; what the others say afterwards is its echo and is listed as notes.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "harness/contract/builtin.h"
#include "harness/contract/cause.h"
#include "harness/contract/hang_text.h"
#include "harness/contract/view.h"

namespace warmgate::contract {
namespace {

constexpr const char* kStarts = "starts";
constexpr std::size_t kMostHangs = 8;  // all of them are in the trace

struct Trouble {
  std::size_t event;
  int rank;
  std::string phase, seen;
};

Finding make(int rank, std::string phase, std::string key, std::string expected, std::string seen,
             std::string message, std::size_t event) {
  Finding f;
  f.contract = kStarts;
  f.phase = std::move(phase);
  f.rank = rank;
  f.key = std::move(key);
  f.expected = std::move(expected);
  f.seen = std::move(seen);
  f.message = std::move(message);
  f.events = {event};
  return f;
}

// Everything that says that a phase did not end well.
std::vector<Trouble> troubles(const View& view) {
  std::vector<Trouble> out;
  std::map<std::pair<int, std::string>, std::size_t> open;
  const int unnamed = view.trace().world <= 1 ? 0 : -1;
  for (std::size_t i = 0; i < view.size(); ++i) {
    const trace::Event& e = view.event(i);
    const int rank = rank_of(e, unnamed);
    const std::string phase(view.phase(i));
    if (e.ev == "phase_begin") {
      open[{rank, phase}] = i;
    } else if (e.ev == "phase_end") {
      open.erase({rank, phase});
      const std::string status(text(e, "status"));
      if (status != "ok") out.push_back({i, rank, phase, "phase " + phase + " " + status});
    } else if (e.ev == "process_end" && ended_badly(e)) {
      const std::int64_t signal = e.num("signal");
      out.push_back(
          {i, rank, phase,
           signal != 0 ? signal_text(signal) : fmt::format("exit {}", e.num("exit_code"))});
    } else if (e.ev == "deadline") {
      out.push_back({i, e.rank && *e.rank >= 0 ? *e.rank : -1, phase, e.str("kind", "deadline")});
    }
  }
  for (const auto& [where, i] : open)
    out.push_back({i, where.first, where.second, "phase " + where.second + " never ended"});
  return out;
}

class Starts : public Contract {
 public:
  std::string_view name() const override { return kStarts; }
  std::string_view promise() const override {
    return "every phase ends well on every rank; the first worker that failed is named";
  }
  std::vector<std::string> needs() const override { return {}; }

  Result judge(const Context& context) const override {
    const View& view = view_of(context);
    std::vector<Trouble> all = troubles(view);
    if (all.empty()) return without_trouble(view);
    Result result;
    result.contract = kStarts;
    result.state = State::kBroken;
    const auto cause = first_cause(view);
    if (cause) {
      const trace::Event& e = view.event(cause->event);
      const std::string where =
          cause->phase.empty() ? "before the first phase" : "in phase " + cause->phase;
      const std::string who =
          cause->rank >= 0 ? fmt::format("rank {}", cause->rank) : std::string("a worker");
      Finding f = make(cause->rank, cause->phase, cause->type, "every phase ends with status ok",
                       cause->type, fmt::format("{} failed {}: {}", who, where, cause->message),
                       cause->event);
      f.layer = layer_of(e);
      f.layer_kind = text(e, "layer_kind");
      f.role = text(e, "role");
      if (cause->kind == Cause::Kind::kFault)
        f.detail = {
            {"function", e.str("function")}, {"file", e.str("file")}, {"line", e.num("line")}};
      result.findings.push_back(std::move(f));
    } else {
      const Trouble& t = all.front();
      result.findings.push_back(make(t.rank, t.phase, t.seen, "every phase ends with status ok",
                                     t.seen, fmt::format("{}, and nothing says why", t.seen),
                                     t.event));
    }
    for (const Trouble& t : all) {
      Finding& main = result.findings.front();
      if (t.rank == main.rank || t.event == main.events.front()) {
        main.events.push_back(t.event);
        continue;
      }
      result.notes.push_back(make(t.rank, t.phase, "echo", "", t.seen,
                                  fmt::format("afterwards, rank {}: {}", t.rank, t.seen), t.event));
    }
    std::size_t told = 0;
    for (std::size_t i = 0; i < view.size(); ++i) {
      const trace::Event& e = view.event(i);
      const std::string doing = e.ev == "hang" ? hang_text(e) : "";
      if (doing.empty() || ++told > kMostHangs) continue;
      result.notes.push_back(make(rank_of(e, -1), "", "hang", "", doing,
                                  fmt::format("when it was given up on, {} (pid {}) was {}",
                                              e.str("process").substr(0, 80), e.num("pid"), doing),
                                  i));
    }
    auto& proof = result.findings.front().events;
    std::sort(proof.begin(), proof.end());
    proof.erase(std::unique(proof.begin(), proof.end()), proof.end());
    return result;
  }

 private:
  // Faults that nobody died of: an exception that ended a thread and not its process.
  static std::vector<Finding> survived(const View& view) {
    std::vector<Finding> out;
    for (std::size_t i = 0; i < view.size() && out.size() < kMostHangs; ++i) {
      const trace::Event& e = view.event(i);
      if (e.ev != "fault" || e.src != "python" || is_writer_limit(e)) continue;
      out.push_back(make(rank_of(e, -1), std::string(view.phase(i)), "survived/" + e.str("type"),
                         "", e.str("type"),
                         fmt::format("{} was raised and nobody ended of it: {}", e.str("type"),
                                     e.str("message").substr(0, 200)),
                         i));
    }
    return out;
  }

  static Result without_trouble(const View& view) {
    const bool phases = view.emits("phase_begin") && view.emits("phase_end");
    std::set<int> ended, ready;
    const int unnamed = view.trace().world <= 1 ? 0 : -1;
    std::size_t begun = 0;
    for (std::size_t i = 0; i < view.size(); ++i) {
      const trace::Event& e = view.event(i);
      if (e.ev == "process_end" && !e.flag("killed_by_us")) ended.insert(rank_of(e, unnamed));
      if (e.ev == "ready" && e.src != "harness") ready.insert(rank_of(e, unnamed));
      if (e.ev == "phase_begin") ++begun;
    }
    if (!phases && begun == 0)
      return not_observed(kStarts, {"phase_begin", "phase_end"}, "no source tells of phases");
    std::vector<Finding> findings;
    if (begun == 0)
      findings.push_back(make(-1, "", "no phase", "phases that begin and end", "none",
                              "no worker went through any phase", 0));
    else if (view.emits("ready") && ready.empty() && !ended.empty())
      findings.push_back(make(-1, "", "never ready", "ready", "none",
                              "every worker ended by itself, and none was ever ready", 0));
    for (Finding& f : findings) f.events.clear();
    Result result = conclude(kStarts, std::move(findings));
    result.notes = survived(view);
    return result;
  }
};

}  // namespace

const Contract& starts_contract() {
  static const Starts contract;
  return contract;
}

}  // namespace warmgate::contract
