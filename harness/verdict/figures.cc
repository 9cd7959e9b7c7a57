#include "harness/verdict/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "harness/contract/key_use.h"
#include "harness/contract/numeric_checks.h"
#include "harness/trace/vocabulary.h"
#include "harness/verdict/mask.h"

namespace warmgate::verdict {
namespace {

using contract::View;

// One figure over ranks.
class Ranks {
 public:
  void set(const std::string& name, int rank, double value) {
    if (std::isfinite(value)) values_[name][rank] = value;
  }
  void add(const std::string& name, int rank, double value) {
    if (std::isfinite(value)) values_[name][rank] += value;
  }
  void raise(const std::string& name, int rank, double value) {
    if (!std::isfinite(value)) return;
    const auto [it, fresh] = values_[name].emplace(rank, value);
    if (!fresh) it->second = std::max(it->second, value);
  }
  void into(std::map<std::string, double>& figures) const {
    for (const auto& [name, ranks] : values_) {
      const trace::FigureRule* rule = trace::find_figure(name);
      const bool smallest = rule && rule->better == trace::Direction::kHigher;
      double value = ranks.begin()->second;
      for (const auto& [rank, v] : ranks)
        value = smallest ? std::min(value, v) : std::max(value, v);
      figures[name] = value;
    }
  }

 private:
  std::map<std::string, std::map<int, double>> values_;
};

class Collector {
 public:
  Collector(const View& view, RunRecord& run)
      : run_(run), view_(view), unnamed_(run.trace.world <= 1 ? 0 : -1) {}

  void run() {
    for (std::size_t i = 0; i < view_.size(); ++i) event(i);
    times();
    keys();
    numerics();
    if (!run_.workers.empty()) {
      std::int64_t peak = 0;
      for (const WorkerEnd& w : run_.workers) peak = std::max(peak, w.peak_rss_bytes);
      if (peak > 0) measured_.set("peak_rss_bytes", 0, static_cast<double>(peak));
    }
    derived_.into(run_.figures);
    counters_.into(run_.figures);
    measured_.into(run_.figures);  // nobody's claim changes what the harness itself measured
    run_.sets["warnings"] = warnings_of(run_.outputs);
    findings();
  }

 private:
  void event(std::size_t i) {
    const trace::Event& e = view_.event(i);
    const int rank = contract::rank_of(e, unnamed_);
    if (e.ev == "counter") {
      if (const auto name = contract::text(e, "name"); !name.empty())
        counters_.set(std::string(name), rank, e.real("value", std::nan("")));
    } else if (e.ev == "kv") {
      for (const auto& [field, figure] :
           {std::pair{"bytes", "kv_bytes"}, std::pair{"blocks", "kv_blocks"},
            std::pair{"tokens", "kv_tokens"}, std::pair{"concurrency", "concurrency"},
            std::pair{"blocks_per_request", "blocks_per_request"},
            std::pair{"block_stride", "block_stride_bytes"}})
        if (contract::has_number(e, field)) derived_.set(figure, rank, e.real(field));
    } else if (e.ev == "phase_begin") {
      begun_[{rank, std::string(contract::text(e, "phase"))}] = e.t_ns;
    } else if (e.ev == "phase_end") {
      phase_end(e, rank);
    } else if (e.ev == "workspace" && view_.is_startup(view_.phase(i))) {
      derived_.raise("workspace_bytes", rank, e.real("capacity", std::nan("")));
    } else if (e.ev == "step" && view_.phase(i) == "serve") {
      derived_.add("steps_served", rank, 1);
    } else if (e.ev == "request" && e.src != "harness") {
      if (e.flag("ok")) derived_.add("requests_ok", rank, 1);
      if (contract::has_number(e, "tokens")) derived_.add("output_tokens", rank, e.real("tokens"));
    } else if (e.ev == "ready" && !contract::text(e, "clock").empty()) {
      if (contract::says_ready(e)) ready_.emplace(rank, e.t_ns);
      // Each as it was seen from outside; what an engine says of itself is not comparable.
      if (e.src == "http" || e.src == "log")
        clocks_["time_to_" + std::string(contract::text(e, "clock")) + "_s"].emplace(rank, e.t_ns);
    }
  }

  void phase_end(const trace::Event& e, int rank) {
    const std::string phase(contract::text(e, "phase"));
    const auto it = begun_.find({rank, phase});
    if (it != begun_.end() && e.t_ns >= it->second && !e.flag("inferred") &&
        trace::find_figure(phase + "_s"))
      derived_.add(phase + "_s", rank,
                   static_cast<double>(contract::elapsed_ns(it->second, e.t_ns)) / 1e9);
    if (it != begun_.end()) begun_.erase(it);
    if (!contract::has_number(e, "peak_bytes")) return;
    if (phase == "profile") derived_.raise("profile_peak_bytes", rank, e.real("peak_bytes"));
    if (phase == "serve") derived_.raise("serve_peak_bytes", rank, e.real("peak_bytes"));
  }

  // From spawn to ready. The harness saw the worker's end and how long it lived; without that, the
  // first thing the rank said is the best there is.
  void times() {
    std::map<int, std::int64_t> start;
    for (const trace::Event& e : run_.trace.events) {
      if (e.src == "span") continue;  // when it began is what the engine's own clock claims
      const int rank = contract::rank_of(e, unnamed_);
      start.emplace(rank, e.t_ns);
      if (e.t_ns < start[rank]) start[rank] = e.t_ns;
    }
    for (const trace::Event& e : run_.trace.events) {
      const double wall = e.ev == "process_end" ? e.real("wall_s") : 0;
      if (!(wall > 0) || wall > 1e7) continue;
      const int rank = contract::rank_of(e, unnamed_);
      const double spawned = static_cast<double>(e.t_ns) - wall * 1e9;
      if (spawned < static_cast<double>(start[rank]) && spawned > -9e18)
        start[rank] = static_cast<std::int64_t>(spawned);
    }
    for (const auto& [rank, t] : ready_)
      measured_.set("time_to_ready_s", rank,
                    static_cast<double>(contract::elapsed_ns(start[rank], t)) / 1e9);
    for (const auto& [name, ranks] : clocks_) {
      if (trace::find_figure(name) == nullptr) continue;
      for (const auto& [rank, t] : ranks)
        measured_.set(name, rank, static_cast<double>(contract::elapsed_ns(start[rank], t)) / 1e9);
    }
  }

  void set(const std::string& name, std::vector<std::string> members) {
    derived_.set(name, 0, static_cast<double>(members.size()));
    run_.sets[name] = std::move(members);
  }

  void keys() {
    const contract::KeyUse use = contract::key_use(view_);
    const bool compiles = view_.emits("compile"), launches = view_.emits("launch");
    // From outside only what is compiled late is seen.
    const bool warmed = launches || !view_.emits("http");
    if (compiles && warmed && view_.reached("warmup")) {
      std::vector<std::string> compiled;
      for (const auto& [key, how] : use.warmed)
        if (!how.ok_ranks.empty()) compiled.push_back(key);
      set("keys_asked", names(use.warmed));
      set("keys_warmed", std::move(compiled));
    }
    if (launches && view_.reached("serve")) {
      set("keys_launched", names(use.launched));
      std::set<std::string> kernels;
      for (std::size_t i = 0; i < view_.size(); ++i)
        if (view_.event(i).ev == "launch" && view_.phase(i) == "serve")
          kernels.emplace(contract::text(view_.event(i), "kernel"));
      run_.sets["kernels"] = {kernels.begin(), kernels.end()};
    }
    if (compiles && !ready_.empty()) set("compiles_after_ready", names(use.late));
    if (view_.emits("skip") && view_.reached("warmup")) {
      std::set<std::string> skips;
      for (const trace::Event& e : run_.trace.events)
        if (e.ev == "skip") skips.emplace(contract::text(e, "step"));
      set("skips", {skips.begin(), skips.end()});
    }
    answers();
    const contract::Result* valid = find_result(run_, "keys-valid");
    if (valid &&
        (valid->state == contract::State::kKept || valid->state == contract::State::kBroken)) {
      std::set<std::string> invalid;
      for (const auto& f : valid->findings) invalid.insert(f.key);
      for (const auto& a : run_.allowed)
        if (a.finding.contract == "keys-valid") invalid.insert(a.finding.key);
      set("keys_invalid", {invalid.begin(), invalid.end()});
    }
  }

  // What a server said to whom: one seed asks both sides of a comparison the same, so with
  // `answers: {new: 0}` a gate holds one side to the words of the other.
  void answers() {
    std::set<std::string> all;
    for (const trace::Event& e : run_.trace.events) {
      const auto hash = contract::text(e, "text_sha256");
      if (e.ev != "request" || e.src != "http" || !e.flag("ok") || hash.empty()) continue;
      all.insert(fmt::format("{} {}", contract::text(e, "id"), hash.substr(0, 12)));
    }
    if (!all.empty()) run_.sets["answers"] = {all.begin(), all.end()};
  }

  void numerics() {
    const auto checks = contract::numeric_checks(view_);
    for (const contract::NumericCheck& check : checks) {
      derived_.raise("numerics_error", check.rank, check.error);
      derived_.add("numerics_checks", check.rank, static_cast<double>(check.count));
    }
  }

  void findings() {
    std::map<std::string, std::set<std::string>> keys;
    for (const contract::Result& result : run_.contracts) {
      if (result.state != contract::State::kKept && result.state != contract::State::kBroken)
        continue;
      auto& mine = keys[result.contract];
      for (const auto* list : {&result.findings, &result.notes})
        for (const contract::Finding& f : *list) mine.insert(f.key);
    }
    for (const auto& a : run_.allowed) keys[a.finding.contract].insert(a.finding.key);
    for (const auto& [name, members] : keys)
      run_.sets["contract:" + name] = {members.begin(), members.end()};
  }

  template <typename Map>
  static std::vector<std::string> names(const Map& map) {
    std::vector<std::string> out;
    for (const auto& [key, value] : map) out.push_back(key);
    return out;
  }

  RunRecord& run_;
  const View& view_;
  int unnamed_;
  Ranks derived_, counters_, measured_;
  std::map<std::pair<int, std::string>, std::int64_t> begun_;
  std::map<int, std::int64_t> ready_;
  std::map<std::string, std::map<int, std::int64_t>> clocks_;  // figure → rank → when it struck
};

bool is_warning(std::string_view line) {
  for (std::string_view word : {"WARNING", "Warning", "warning", "WARN "})
    if (line.find(word) != std::string_view::npos) return true;
  return false;
}

}  // namespace

void collect_figures(const View& view, RunRecord& run) { Collector(view, run).run(); }

std::vector<std::string> warnings_of(const std::vector<Output>& outputs) {
  std::set<std::string> seen;
  const auto take = [&](std::string_view line) {
    if (is_warning(line) && seen.size() < 200) seen.insert(mask(line.substr(0, 300)));
  };
  for (const Output& output : outputs) {
    for (const std::string* text : {&output.head, &output.tail}) {
      for (std::size_t at = 0; at < text->size();) {
        const std::size_t end = std::min(text->find('\n', at), text->size());
        take(std::string_view(*text).substr(at, end - at));
        at = end + 1;
      }
    }
    for (const std::string& line : output.matched) take(line);
  }
  return {seen.begin(), seen.end()};
}

}  // namespace warmgate::verdict
