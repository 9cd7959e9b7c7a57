// nothing-left-behind: after the run no process and no file of it is left, and what the engine says
// of its own state (blocks, lengths, cache contents) is what it said before.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "harness/contract/builtin.h"
#include "harness/contract/fold.h"
#include "harness/contract/view.h"

namespace warmgate::contract {
namespace {

constexpr const char* kNothingLeftBehind = "nothing-left-behind";

std::string_view last_part(std::string_view path) {
  const std::size_t slash = path.find_last_of('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

// Neither pids nor scratch folders belong into a key: `allow` must match it in the next run too.
std::string key_of(const trace::Event& e) {
  const std::string_view what = text(e, "what");
  if (what == "gpu_memory") return std::string(what);  // which GPU is the machine's affair
  std::string_view name = text(e, "path").empty() ? text(e, "cmd") : text(e, "path");
  name = last_part(name.substr(0, name.find(' ')));
  std::string key = fmt::format("{}/{}", what, name.empty() ? "?" : name);
  if (what != "shm") return key;
  std::string masked;  // libraries put their pids into names of shared memory
  for (const char c : key) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit || masked.back() != '#') masked += digit ? '#' : c;
  }
  return masked;
}

double mib(const trace::Event& e, std::string_view bytes) { return e.real(bytes, 0) / (1 << 20); }

std::string value_text(const nlohmann::json& value) {
  const std::string text = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return text.size() <= 60 ? text : text.substr(0, 57) + "...";
}

// `state` events of one rank: each names the fields that have to be as they were in the first.
class States {
 public:
  States(const View& view, Fold& fold) : view_(view), fold_(fold) {}

  void add(std::size_t i) {
    const trace::Event& e = view_.event(i);
    ++seen_;
    if (claimed_faults(e, "kv_nan") != 0) {
      Finding f = base("kv_nan", i);
      f.expected = "no NaN in the KV cache";
      f.seen = fmt::format(
          "{} {}",
          counted(static_cast<std::size_t>(std::max<std::int64_t>(claimed_faults(e, "kv_nan"), 1)),
                  "NaN"),
          text(e, "at"));
      f.message = fmt::format(
          "{} in the KV cache {}",
          counted(static_cast<std::size_t>(std::max<std::int64_t>(claimed_faults(e, "kv_nan"), 1)),
                  "NaN"),
          text(e, "at"));
      fold_.add(std::move(f), "kv_nan");
    }
    const auto [it, first] = first_.try_emplace(rank_of(e), i);
    if (first) return;
    const trace::Event& before = view_.event(it->second);
    for (const std::string& field : e.strings("keeps")) compare(field, before, it->second, i);
  }
  std::size_t seen() const { return seen_; }

 private:
  void compare(const std::string& field, const trace::Event& before, std::size_t before_at,
               std::size_t i) {
    const trace::Event& e = view_.event(i);
    // What the first state did not have cannot be held against a later one.
    if (!before.body.contains(field)) return;
    const bool gone = !e.body.contains(field);
    const nlohmann::json old = before.body.value(field), now = e.body.value(field);
    if (!gone && now == old) return;
    Finding f = base(field, i);
    f.expected = fmt::format("{} {}", value_text(old), text(before, "at"));
    f.seen = fmt::format("{} {}", gone ? "nothing" : value_text(now), text(e, "at"));
    f.message = fmt::format("{} is not as it was: {}; {}", field, f.expected, f.seen);
    f.events = {before_at, i};
    fold_.add(std::move(f), field);
  }
  Finding base(const std::string& field, std::size_t i) const {
    Finding f;
    f.contract = kNothingLeftBehind;
    f.phase = view_.phase(i);
    f.rank = rank_of(view_.event(i));
    f.key = "state/" + field;
    f.events = {i};
    return f;
  }
  const View& view_;
  Fold& fold_;
  std::map<int, std::size_t> first_;
  std::size_t seen_ = 0;
};

class NothingLeftBehind : public Contract {
 public:
  std::string_view name() const override { return kNothingLeftBehind; }
  std::string_view promise() const override {
    return "after the run no process or file of it is left; blocks, lengths and cache contents are "
           "as before where the engine says so";
  }
  // The harness looks for leftovers when the last worker has ended, and then says process_end.
  std::vector<std::string> needs() const override { return {"process_end"}; }

  Result judge(const Context& context) const override {
    const View& view = view_of(context);
    Fold fold;
    States states(view, fold);
    std::vector<Finding> notes;
    std::vector<std::string> back;
    for (std::size_t i = 0; i < view.size(); ++i) {
      const trace::Event& e = view.event(i);
      if (e.ev == "state") states.add(i);
      if (e.ev == "gpu_memory") back.push_back(came_back(e));
      if (e.ev == "stop") stopped(e, i, fold, notes);
      if (e.ev == "leftover" && text(e, "what") == "shm" && !e.flag("of_run")) {
        notes.push_back(maybe(e, i));
      } else if (e.ev == "leftover") {
        Finding f;
        f.contract = kNothingLeftBehind;
        f.phase = "shutdown";
        f.rank = e.rank && *e.rank >= 0 ? *e.rank : -1;
        f.key = key_of(e);
        f.expected = "nothing left";
        f.seen = fmt::format("a {} was left: {}{}", text(e, "what"),
                             text(e, "path").empty() ? text(e, "cmd") : text(e, "path"),
                             text(e, "port").empty() ? "" : " listens on " + e.str("port"));
        if (text(e, "what") == "gpu_memory")
          f.seen =
              fmt::format("{:.0f} MiB of {} did not come back", mib(e, "bytes"), text(e, "path"));
        if (e.flag("removed")) f.seen += " (removed)";
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
        f.contract = kNothingLeftBehind;
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
    if (states.seen() == 0) back.insert(back.begin(), "the engine's own state was not told");
    Result result = conclude(kNothingLeftBehind, fold.take(), State::kKept,
                             fmt::format("{}", fmt::join(back, "; ")));
    result.notes = std::move(notes);
    return result;
  }

 private:
  static std::string came_back(const trace::Event& e) {
    return fmt::format("memory of {}: {:.0f} MiB in use before, {:.0f} after", text(e, "path"),
                       mib(e, "before"), mib(e, "after"));
  }
  // What ends a container or a cluster's job: where it did not run, the work may well go on.
  static void stopped(const trace::Event& e, std::size_t at, Fold& fold,
                      std::vector<Finding>& notes) {
    const std::string error = e.str("error");
    const std::int64_t code = e.num("exit_code"), signal = e.num("signal");
    if (error.empty() && !e.flag("timed_out") && code == 0 && signal == 0) return;
    Finding f;
    f.contract = kNothingLeftBehind;
    f.phase = "shutdown";
    f.key = "stop";
    f.expected = "the stop command ends what the target started";
    f.seen = !error.empty()        ? error
             : e.flag("timed_out") ? "it did not end in time"
             : signal != 0         ? fmt::format("it ended by signal {}", signal)
                                   : fmt::format("it ended with {}", code);
    f.message = "the stop command: " + f.seen;
    f.events = {at};
    // With a code of its own it ran: often it says that there was nothing left to stop.
    if (error.empty() && !e.flag("timed_out") && signal == 0)
      notes.push_back(std::move(f));
    else
      fold.add(std::move(f), "stop");
  }

  // New in /dev/shm while the run went on, but perhaps not the run's.
  static Finding maybe(const trace::Event& e, std::size_t at) {
    Finding f;
    f.contract = kNothingLeftBehind;
    f.phase = "shutdown";
    f.key = key_of(e);
    f.expected = "nothing left";
    f.seen = fmt::format("{}: {}", text(e, "path"), text(e, "why"));
    f.message = f.seen;
    f.events = {at};
    return f;
  }
};

}  // namespace

const Contract& nothing_left_behind_contract() {
  static const NothingLeftBehind contract;
  return contract;
}

}  // namespace warmgate::contract
