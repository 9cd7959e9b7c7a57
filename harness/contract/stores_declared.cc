// stores-declared: what the harness put aside stays aside. A cold start that reads a warm cache, or
// compiles into one that nobody looks at, measures something else.
#include <fmt/format.h>

#include <map>

#include "harness/contract/builtin.h"
#include "harness/contract/view.h"

namespace warmgate::contract {
namespace {

constexpr const char* kStoresDeclared = "stores-declared";

class StoresDeclared : public Contract {
 public:
  std::string_view name() const override { return kStoresDeclared; }
  std::string_view promise() const override {
    return "cache stores are in the state that was asked for, used where they are warm, and "
           "written only where they were told to be";
  }
  std::vector<std::string> needs() const override { return {}; }

  Result judge(const Context& context) const override {
    const View& view = view_of(context);
    std::map<std::string, std::size_t> told;  // store → the event that says where it is
    Result result = conclude(kStoresDeclared, {}, State::kKept, "");
    bool asked = false;
    for (std::size_t i = 0; i < view.size(); ++i) {
      const trace::Event& e = view.event(i);
      if (e.ev != "store") continue;
      const auto status = text(e, "status");
      const std::string store(text(e, "store"));
      if (status == "prepared" && !text(e, "state_asked").empty()) {
        asked = true;
        told[store] = i;
        if (!e.flag("reached", true)) result.notes.push_back(not_reached(e, store, i));
      } else if (status == "outside") {
        result.findings.push_back(outside(view, told, e, store, i));
      } else if (status == "rebuilt") {
        result.findings.push_back(rebuilt(e, store, i));
      } else if (status == "downloaded" || status == "grew") {
        // A cold store of downloads was asked to be filled.
        const auto it = told.find(store);
        const bool wanted = it != told.end() && view.event(it->second).str("state_asked") == "cold";
        const bool finding = status == "downloaded" && !wanted;
        (finding ? result.findings : result.notes).push_back(grew(e, store, i));
      }
    }
    if (!result.findings.empty()) result.state = State::kBroken;
    if (!asked && result.findings.empty() && result.notes.empty())
      return not_applicable(kStoresDeclared, "no state of a cache store was asked for");
    return result;
  }

 private:
  static Finding base(const std::string& key, std::size_t event) {
    Finding f;
    f.contract = kStoresDeclared;
    f.key = key;
    f.events = {event};
    return f;
  }

  static Finding outside(const View& view, const std::map<std::string, std::size_t>& told,
                         const trace::Event& e, const std::string& store, std::size_t i) {
    Finding f = base(store, i);
    const auto it = told.find(store);
    f.expected = it == told.end() ? "nothing there" : "in " + view.event(it->second).str("path");
    f.seen = fmt::format("{} at {}", counted(static_cast<std::size_t>(e.num("files", 1)), "file"),
                         text(e, "path"));
    if (const auto example = text(e, "example"); !example.empty())
      f.seen += fmt::format(", e.g. {}", example);
    f.message = fmt::format("the store {} was written at its default place: {}", store, f.seen);
    if (it != told.end()) f.events.push_back(it->second);
    return f;
  }

  static Finding rebuilt(const trace::Event& e, const std::string& store, std::size_t i) {
    Finding f = base("rebuilt/" + store, i);
    const auto held = counted(static_cast<std::size_t>(e.num("held", 1)), "file");
    f.expected = "what the warm store holds is used";
    f.seen = fmt::format("{} made before ready, e.g. {}",
                         counted(static_cast<std::size_t>(e.num("files", 1)), "file"),
                         text(e, "example"));
    f.message =
        fmt::format("the store {} was warm with {}, and was not used: {}", store, held, f.seen);
    return f;
  }

  static Finding not_reached(const trace::Event& e, const std::string& store, std::size_t i) {
    Finding f = base("state/" + store, i);
    f.expected = e.str("state_asked");
    f.seen = e.str("state_found");
    if (const auto why = text(e, "note"); !why.empty()) f.seen += fmt::format(": {}", why);
    f.message = fmt::format("the store {} was to be {}, and was {}", store, f.expected, f.seen);
    return f;
  }

  static Finding grew(const trace::Event& e, const std::string& store, std::size_t i) {
    const bool fetched = text(e, "status") == "downloaded";
    Finding f = base((fetched ? "downloaded/" : "grew/") + store, i);
    f.expected = fetched ? "nothing is fetched while the clock runs" : "nothing new after ready";
    f.seen =
        fmt::format("{}, e.g. {}", counted(static_cast<std::size_t>(e.num("files", 1)), "file"),
                    text(e, "example"));
    f.message = fmt::format("the store {} grew {}: {}", store,
                            fetched ? "during the run" : "after ready", f.seen);
    return f;
  }
};

}  // namespace

const Contract& stores_declared_contract() {
  static const StoresDeclared contract;
  return contract;
}

}  // namespace warmgate::contract
