// A contract is an invariant over one trace. It never looks at processes, files or clocks: what it
// judges is what was recorded, so the same code judges our engine and anybody's.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "harness/scenario/resolved.h"
#include "harness/trace/event.h"

namespace warmgate::contract {

/// One broken promise.
struct Finding {
  std::string contract;
  std::string phase;
  int layer = -1;          // -1: no layer
  std::string layer_kind;  // swaonly c4a c128a, "" = none
  std::string role;        // target draft, "" = none
  int rank = -1;           // -1: all or none
  std::string key;         // what `allow.match` is held against: a compile key, a resource, a stage
  std::string expected, seen;       // one line each
  std::string message;              // one sentence for a person
  std::vector<std::size_t> events;  // indices into the trace: the proof
  std::size_t count = 1;            // equal findings folded into this one (e.g. 3 draft layers)
  nlohmann::json detail;            // anything more, for the JSON report
};

enum class State { kKept, kBroken, kNotObserved, kNotApplicable };
std::string_view to_string(State state);

struct Result {
  std::string contract;
  State state = State::kKept;
  std::vector<Finding> findings;  // kBroken
  std::vector<Finding> notes;     // worth printing, breaks nothing unless `gate` names the contract
  std::vector<std::string> missing;  // kNotObserved: kinds of event no source would have sent
  std::string why;                   // kNotApplicable, or what limits the judgement
  /// kNotObserved with `missing`: the channel that would have shown it ("--probe nccl shows it").
  std::string shown_by;
};

/// Why it was not observed, in one line: why, the missing kinds of event, what would show it.
std::string why_not_observed(const Result& result);

class View;  // view.h

struct Context {
  const trace::Trace& trace;
  /// rank 0's resolved scenario; null for command targets without a model.
  const scenario::Resolved* resolved = nullptr;
  /// What every contract asks of the trace, made by the first that does; the trace stays as it is
  /// as long as the context is in use.
  mutable std::shared_ptr<const View> view = nullptr;
};

class Contract {
 public:
  virtual ~Contract() = default;
  virtual std::string_view name() const = 0;
  virtual std::string_view promise() const = 0;  // one line
  /// Kinds of event without which nothing can be said.
  virtual std::vector<std::string> needs() const = 0;
  /// Called only if the trace's emits() contains all of needs().
  virtual Result judge(const Context& context) const = 0;
};

/// Every built-in contract, in the order in which reports show them.
const std::vector<const Contract*>& builtin_contracts();
/// The built-in contract of this name; null if there is none.
const Contract* find_contract(std::string_view name);
/// needs() against emits(), then judge(); never throws (an exception becomes kNotObserved with
/// why).
[[nodiscard]] Result judge(const Contract& contract, const Context& context);

/// A contract as an executable outside the tree: the trace on its stdin as JSON Lines, findings on
/// its stdout as JSON Lines `{"expected":…,"seen":…,"message":…,…}`, exit 0 = judged.
struct ExternalContract {
  std::string name;
  std::vector<std::string> argv;
  std::vector<std::string> needs;
  std::chrono::milliseconds deadline{5000};
};

}  // namespace warmgate::contract
