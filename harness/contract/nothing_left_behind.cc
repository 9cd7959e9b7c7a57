// nothing-left-behind: after the run no process and no file of it is left, and what the engine says
// of its own blocks at the end is what it said at the beginning.
#include <fmt/format.h>

#include "harness/contract/builtin.h"
#include "harness/contract/fold.h"
#include "harness/contract/view.h"

namespace warmgate::contract {
namespace {

constexpr const char* kName = "nothing-left-behind";

std::string_view last_part(std::string_view path) {
  const std::size_t slash = path.find_last_of('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

// Neither pids nor scratch folders belong into a key: `allow` must match it in the next run too.
std::string key_of(const trace::Event& e) {
  const std::string_view what = text(e, "what");
  std::string_view name = text(e, "path").empty() ? text(e, "cmd") : text(e, "path");
  name = last_part(name.substr(0, name.find(' ')));
  return fmt::format("{}/{}", what, name.empty() ? "?" : name);
}

class NothingLeftBehind : public Contract {
 public:
  std::string_view name() const override { return kName; }
  std::string_view promise() const override {
    return "after the run no process or file of it is left, and blocks are free as before";
  }
  // The harness looks for leftovers when the last worker has ended, and then says process_end.
  std::vector<std::string> needs() const override { return {"process_end"}; }

  Result judge(const Context& context) const override {
    const View view(context.trace);
    Fold fold;
    for (std::size_t i = 0; i < view.size(); ++i) {
      const trace::Event& e = view.event(i);
      if (e.ev == "leftover") {
        Finding f;
        f.contract = kName;
        f.phase = "shutdown";
        f.rank = e.rank && *e.rank >= 0 ? *e.rank : -1;
        f.key = key_of(e);
        f.expected = "nothing left";
        f.seen = fmt::format("a {} was left: {}", text(e, "what"),
                             text(e, "path").empty() ? text(e, "cmd") : text(e, "path"));
        f.message =
            has_number(e, "pid") ? fmt::format("{} (pid {})", f.seen, e.num("pid")) : f.seen;
        f.events = {i};
        fold.add(std::move(f), std::to_string(i));
      }
      // Engine's own accounts, where it keeps them: all blocks are free again at the end.
      if (e.ev == "phase_end" && (view.phase(i) == "serve" || view.phase(i) == "shutdown") &&
          text(e, "status") == "ok" && has_number(e, "free_blocks") &&
          has_number(e, "total_blocks") && e.num("free_blocks") != e.num("total_blocks")) {
        Finding f;
        f.contract = kName;
        f.phase = view.phase(i);
        f.rank = e.rank && *e.rank >= 0 ? *e.rank : -1;
        f.key = "kv_blocks";
        f.expected = fmt::format("{} blocks free", e.num("total_blocks"));
        f.seen = fmt::format("{} free", e.num("free_blocks"));
        f.message = fmt::format("at the end of {} not every KV block is free: {} of {}", f.phase,
                                e.num("free_blocks"), e.num("total_blocks"));
        f.events = {i};
        fold.add(std::move(f), "kv_blocks");
      }
    }
    return conclude(kName, fold.take());
  }
};

}  // namespace

const Contract& nothing_left_behind_contract() {
  static const NothingLeftBehind contract;
  return contract;
}

}  // namespace warmgate::contract
