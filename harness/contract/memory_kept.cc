// memory-kept: device memory is settled when the engine says ready. What a living graph names is
// not given back, and serving takes no large piece more.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "harness/contract/builtin.h"
#include "harness/contract/probe_view.h"

namespace warmgate::contract {
namespace {

constexpr const char* kMemoryKept = "memory-kept";
// Allocators round to segments of 2 to 20 MiB; what the KV cache was not sized for is larger.
constexpr std::int64_t kLarge = std::int64_t{64} << 20;

class MemoryKept : public Contract {
 public:
  std::string_view name() const override { return kMemoryKept; }
  std::string_view promise() const override {
    return "memory that a captured graph names stays, and after ready no more than 64 MiB are "
           "taken from the device";
  }
  std::vector<std::string> needs() const override { return {}; }

  Result judge(const Context& context) const override {
    const View& view = view_of(context);
    const ProbeView probe(view);
    if (auto not_judged = probe.not_judged(kMemoryKept, false)) return *not_judged;
    Result result = conclude(kMemoryKept, {});
    result.why = probe.limit();
    std::map<std::int64_t, Late> late;  // by process
    for (const std::size_t i : probe.events()) {
      const trace::Event& e = view.event(i);
      if (e.ev == "free" && !e.strings("named_by").empty()) result.findings.push_back(stale(e, i));
      if (!probe.after_ready(e)) continue;
      Late& mine = late[e.num("pid")];
      if (e.ev == "alloc") mine.take(e, i);
      if (e.ev == "free") mine.give_back(e);
    }
    for (const auto& [pid, mine] : late) {
      if (mine.most <= 0) continue;
      (mine.most > kLarge ? result.findings : result.notes).push_back(grown(mine));
    }
    if (!result.findings.empty()) {
      result.state = State::kBroken;
    } else if (auto not_judged = probe.not_judged(kMemoryKept, true)) {
      return *not_judged;
    }
    return result;
  }

 private:
  // What one process took after ready and has not given back; what it only exchanged is not more.
  struct Late {
    std::int64_t now = 0, most = 0, pieces = 0;
    std::vector<std::size_t> events;
    void take(const trace::Event& e, std::size_t i) {
      now += std::max<std::int64_t>(0, e.num("bytes"));
      most = std::max(most, now);
      ++pieces;
      if (events.size() < 16) events.push_back(i);
    }
    void give_back(const trace::Event& e) { now -= std::max<std::int64_t>(0, e.num("bytes")); }
  };

  static Finding grown(const Late& late) {
    Finding f;
    f.contract = kMemoryKept;
    f.key = "after-ready";
    f.phase = "serve";
    f.expected = "at most " + rounded_bytes(kLarge) + " after ready";
    f.seen = rounded_bytes(late.most);
    f.events = late.events;
    f.message = fmt::format(
        "{} more of device memory were taken after ready, in {}: the KV cache was "
        "sized without them",
        f.seen, counted(static_cast<std::size_t>(late.pieces), "piece"));
    return f;
  }

  static Finding stale(const trace::Event& e, std::size_t i) {
    Finding f;
    f.contract = kMemoryKept;
    f.key = "graph/" + e.str("pool");
    f.phase = "serve";
    f.expected = "memory stays as long as a graph that names it";
    f.seen = rounded_bytes(e.num("bytes")) + " given back";
    f.events = {i};
    f.message = fmt::format(
        "{} at {} were given back while {} still {} them: the next replay reads "
        "or writes what is somebody else's",
        rounded_bytes(e.num("bytes")), text(e, "address"),
        counted(e.strings("named_by").size(), "captured graph"),
        e.strings("named_by").size() == 1 ? "names" : "name");
    return f;
  }
};

}  // namespace

const Contract& memory_kept_contract() {
  static const MemoryKept contract;
  return contract;
}

}  // namespace warmgate::contract
