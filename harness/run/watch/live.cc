#include "harness/run/watch/live.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/contract/builtin.h"
#include "harness/contract/hang_text.h"
#include "harness/contract/kernel_name.h"
#include "harness/contract/probe_view.h"

namespace warmgate::run {
namespace {

using Kind = LiveLine::Kind;

constexpr std::int64_t kLarge = std::int64_t{1} << 20;

std::string first_name(const trace::Event& e) {
  const std::vector<std::string> names = e.strings("names");
  if (names.empty()) return "a module without kernels";
  const std::int64_t all = e.num("kernels", 1);
  return contract::kernel_name(names.front()) +
         (all > 1 ? fmt::format(" and {} more", all - 1) : "");
}

std::string inside(const trace::Event& e) {
  return e.body.contains("in_capture") ? " inside a capture" : "";
}

std::string bytes_text(std::int64_t bytes) { return contract::rounded_bytes(bytes); }

}  // namespace

LiveLine Live::line(const trace::Event& event, Kind kind, std::string text) const {
  const std::int64_t ns = std::max<std::int64_t>(0, event.t_ns - start_ns_);
  return {static_cast<double>(ns) / 1e9, kind, who(event) + std::move(text)};
}

// Whose line it is, once there are several.
std::string Live::who(const trace::Event& event) const {
  if (!event.rank || *event.rank < 0 || ranks_.size() < 2) return "";
  return fmt::format("rank {}: ", *event.rank);
}

bool Live::late(const trace::Event& event) const {
  return all_ready_ns_ && event.t_ns > *all_ready_ns_ + event.res_ns;
}

std::optional<double> Live::ready_s() const {
  if (!all_ready_ns_) return std::nullopt;
  return static_cast<double>(std::max<std::int64_t>(0, *all_ready_ns_ - start_ns_)) / 1e9;
}

bool Live::all_ready() const {
  if (!ready_ns_) return false;
  if (ready_for_all_) return true;
  if (static_cast<std::int64_t>(said_ready_.size()) < world_) return false;
  return std::includes(said_ready_.begin(), said_ready_.end(), hello_.begin(), hello_.end());
}

std::string Live::sums() const {
  std::vector<std::string> parts;
  if (modules_ > 0)
    parts.push_back(contract::counted(static_cast<std::size_t>(modules_), "module") + " of " +
                    bytes_text(code_bytes_));
  if (taken_ > 0) {
    parts.push_back(bytes_text(taken_) + " of device memory taken" +
                    (given_ > 0 ? ", " + bytes_text(given_) + " given back" : ""));
  }
  if (compiles_ > 0) parts.push_back(fmt::format("{} compiled", compiles_));
  if (graphs_ > 0) parts.push_back(contract::counted(static_cast<std::size_t>(graphs_), "graph"));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::optional<LiveLine> Live::code(const trace::Event& e) {
  const bool own = e.str("origin") == "memory" && !e.flag("lazy");
  ++modules_;
  code_bytes_ += std::max<std::int64_t>(0, e.num("bytes"));
  const std::string where = inside(e);
  if (!late(e) && where.empty()) return std::nullopt;
  return line(
      e, own ? Kind::kLate : Kind::kNote,
      fmt::format("{}: {} ({}){}", own ? "code compiled or read" : "code of a library, lazily",
                  first_name(e), bytes_text(e.num("bytes")), where));
}

std::optional<LiveLine> Live::memory(const trace::Event& e) {
  const std::int64_t bytes = std::max<std::int64_t>(0, e.num("bytes"));
  const bool taken = e.ev == "alloc";
  (taken ? taken_ : given_) += bytes;
  if (!e.strings("named_by").empty()) {
    return line(e, Kind::kLate, bytes_text(bytes) + " given back that a captured graph names");
  }
  const std::string where = inside(e);
  if ((!late(e) || bytes < kLarge) && where.empty()) return std::nullopt;
  // A framework's allocator fills a graph's own pool inside the capture: usual, and before ready.
  return line(e, taken && late(e) ? Kind::kLate : Kind::kNote,
              fmt::format("{} of device memory {}{}", bytes_text(bytes),
                          taken ? "taken" : "given back", where));
}

std::vector<LiveLine> Live::take(const trace::Event& e) {
  std::vector<LiveLine> out;
  const auto add = [&](Kind kind, std::string text) {
    out.push_back(line(e, kind, std::move(text)));
  };
  const auto maybe = [&](std::optional<LiveLine> made) {
    if (made) out.push_back(std::move(*made));
  };
  const int rank = e.rank ? *e.rank : -1;
  if (rank >= 0) ranks_.insert(rank);
  if (e.ev == "hello" && e.src == "channel") {
    if (rank >= 0) hello_.insert(rank);
    world_ = std::max(world_, std::min<std::int64_t>(e.num("world"), 1 << 20));
  }
  if (e.ev == "ready") {
    if (rank >= 0 && e.src == "channel") said_ready_.insert(rank);
    ready_for_all_ = ready_for_all_ || rank < 0 || e.src != "channel";
  }
  if (e.ev == "phase_begin") {
    phases_[{e.source, e.str("phase")}] = e.t_ns;
    add(Kind::kStep, e.str("phase") + " …");
  } else if (e.ev == "phase_end") {
    const auto begun = phases_.find({e.source, e.str("phase")});
    const std::string took =
        begun == phases_.end()
            ? ""
            : fmt::format(" in {:.1f} s", static_cast<double>(e.t_ns - begun->second) / 1e9);
    const bool well = e.str("status") == "ok";
    const std::string all = sums();
    add(well ? Kind::kStep : Kind::kTrouble,
        fmt::format("{} {}{}{}", e.str("phase"), well ? "done" : e.str("status"), took,
                    all.empty() ? "" : " (so far " + all + ")"));
  } else if (e.ev == "ready") {
    const bool first = !ready_ns_;
    if (first) ready_ns_ = e.t_ns;
    if (!all_ready_ns_ && all_ready()) {
      all_ready_ns_ = e.t_ns;
      const std::string all = sums();
      add(Kind::kReady, fmt::format("ready, as its {} says{}", e.str("clock"),
                                    all.empty() ? "" : "; so far " + all));
    } else if (rank >= 0 && e.src == "channel" && !all_ready_ns_) {
      add(Kind::kStep, "ready, others are not yet");
    }
  } else if (e.ev == "module" && e.src == "probe") {
    maybe(code(e));
  } else if ((e.ev == "alloc" || e.ev == "free") && e.src == "probe") {
    maybe(memory(e));
  } else if (e.ev == "graph" && e.str("status") == "instantiated") {
    ++graphs_;
  } else if (e.ev == "sync") {
    add(Kind::kLate, e.str("call") + " inside a capture");
  } else if (e.ev == "compile" && e.str("source") == "compiler") {
    ++compiles_;
    const std::string key = e.str("key");
    if (late(e)) add(Kind::kLate, "compiled after ready: " + (key.empty() ? e.str("kernel") : key));
  } else if (e.ev == "skip") {
    add(Kind::kTrouble, "skipped " + e.str("step") + ": " + e.str("reason"));
  } else if (e.ev == "fault") {
    add(Kind::kTrouble, e.str("type") + ": " + e.str("message").substr(0, 300));
  } else if (e.ev == "probe") {
    const std::string status = e.str("status"), reason = e.str("reason");
    const std::string text = fmt::format("{} probe {}{}", e.src == "probe" ? "cuda" : e.src, status,
                                         reason.empty() ? "" : ": " + reason);
    // Every process says so; once is enough.
    if (status != "asked" && told_.insert(text).second)
      add(status == "attached" ? Kind::kStep : Kind::kNote, text);
  } else if (e.ev == "hang") {
    if (const std::string doing = contract::hang_text(e); !doing.empty())
      add(Kind::kTrouble, fmt::format("pid {} was {}", e.num("pid"), doing));
  }
  return out;
}

}  // namespace warmgate::run
