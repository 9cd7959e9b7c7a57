// graph-stable: what a captured graph replays is what the step would have run. The engine walks its
// host code at each replay and says where it would have gone another way; now and then it runs the
// step eagerly too and compares.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "harness/contract/builtin.h"
#include "harness/contract/fold.h"
#include "harness/contract/numeric_checks.h"
#include "harness/contract/view.h"

namespace warmgate::contract {
namespace {

constexpr const char* kGraphStable = "graph-stable";

// "topk_per_row at 0x7f…" → "topk_per_row".
std::string kernel_of(const std::string& asked) { return asked.substr(0, asked.find(' ')); }

// Counts are claims: they may be anything.
void add(std::int64_t& sum, std::int64_t count) {
  if (count > 0 && __builtin_add_overflow(sum, count, &sum))
    sum = std::numeric_limits<std::int64_t>::max();
}

class GraphStable : public Contract {
 public:
  std::string_view name() const override { return kGraphStable; }
  std::string_view promise() const override {
    return "a replayed graph holds the kernels, addresses and arguments that its step asks for, "
           "and "
           "gives what an eager run gives";
  }
  std::vector<std::string> needs() const override { return {"capture", "replay"}; }

  Result judge(const Context& context) const override {
    const View& view = view_of(context);
    Fold fold;
    std::size_t graphs = 0;
    std::int64_t replays = 0, compared = 0, unequal = 0;
    double worst = 0;
    std::set<std::pair<int, std::string>> captured;  // rank, graph
    for (std::size_t i = 0; i < view.size(); ++i) {
      const trace::Event& e = view.event(i);
      const std::pair graph{rank_of(e), std::string(text(e, "graph"))};
      if (e.ev == "capture") {
        ++graphs;
        captured.insert(graph);
      }
      if (e.ev != "replay") continue;
      if (captured.count(graph) == 0) fold.add(nobodys(view, e, i), graph.second);
      if (e.body.contains("differs")) {
        fold.add(difference(view, e, i), fmt::format("{}/{}", layer_of(e), text(e, "graph")));
        continue;
      }
      // An error that is no number is the worst there is; where nothing was compared there is none.
      const bool compares = e.num("compared") > 0 || e.body.contains("error");
      const double error = has_number(e, "error") ? e.real("error") : compares ? std::nan("") : 0;
      if (!(error >= 0 && error <= kNumericLimit))
        fold.add(not_as_eager(view, e, i, error), std::string(text(e, "graph")));
      if (!e.flag("final")) continue;
      add(replays, e.num("count"));
      add(compared, e.num("compared"));
      add(unequal, e.num("unequal"));
      worst = std::max(worst, error);
    }
    std::vector<Finding> findings = fold.take();
    if (graphs == 0 && findings.empty()) {
      Result result = conclude(kGraphStable, {}, State::kNotApplicable, "nothing was captured");
      return result;
    }
    if (replays == 0 && findings.empty())
      return not_observed(kGraphStable, {}, counted(graphs, "graph") + " captured, none replayed");
    return conclude(
        kGraphStable, std::move(findings), State::kKept,
        fmt::format("{}, {} replays, {} compared with an eager run: {} differ in a bit, "
                    "the worst row by {:.6f}",
                    counted(graphs, "graph"), replays, compared, unequal, worst));
  }

 private:
  static Finding nobodys(const View& view, const trace::Event& e, std::size_t i) {
    Finding f = base(view, e, i);
    f.key = "captured";
    f.expected = "a graph that was captured before";
    f.seen = fmt::format("a replay of {}",
                         text(e, "graph").empty() ? "a graph without a name" : text(e, "graph"));
    f.message = f.seen + ", which nobody captured before";
    return f;
  }
  static Finding base(const View& view, const trace::Event& e, std::size_t i) {
    Finding f;
    f.contract = kGraphStable;
    f.phase = view.phase(i);
    f.rank = rank_of(e);
    f.events = {i};
    return f;
  }
  static Finding difference(const View& view, const trace::Event& e, std::size_t i) {
    Finding f = base(view, e, i);
    const std::string kind(text(e, "differs")), captured(text(e, "captured")),
        asked(text(e, "asked"));
    f.layer = layer_of(e);
    f.layer_kind = text(e, "layer_kind");
    f.role = text(e, "role");
    f.key = kind + "/" + kernel_of(kind == "branch" ? captured : asked);
    f.expected = "what was captured is what the step asks for";
    if (kind == "pointer") {
      f.seen = fmt::format("the graph holds another address for {}", kernel_of(asked));
      f.message =
          fmt::format("a stale pointer: the graph has {}, the step now has {}", captured, asked);
    } else {
      f.seen = fmt::format("the graph has {}, the step asks for {}", captured, asked);
      f.message = kind == "branch" ? "a branch of the host is frozen: " + f.seen : f.seen;
    }
    return f;
  }
  static Finding not_as_eager(const View& view, const trace::Event& e, std::size_t i,
                              double error) {
    Finding f = base(view, e, i);
    f.key = "eager";
    f.expected = fmt::format("a row error of at most {:.6f} against an eager run", kNumericLimit);
    f.seen = error < 1e8 ? fmt::format("{:.6f}", error) : "values that are no numbers";
    f.message = fmt::format(
        "graph {} does not give what its step gives eagerly: {} where at most "
        "{:.6f} is rounding",
        text(e, "graph"), f.seen, kNumericLimit);
    return f;
  }
};

}  // namespace

const Contract& graph_stable_contract() {
  static const GraphStable contract;
  return contract;
}

}  // namespace warmgate::contract
