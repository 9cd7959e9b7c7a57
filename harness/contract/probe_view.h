// What the probe of a process saw, for the contracts that only it can serve.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/contract/contract.h"
#include "harness/contract/view.h"

namespace warmgate::contract {

/// "20.0 MiB".
std::string rounded_bytes(std::int64_t bytes);

/// Did somebody ask for this probe (`cuda`, `nccl` …)?
bool was_asked(const View& view, std::string_view probe);

class ProbeView {
 public:
  explicit ProbeView(const View& view);
  /// Events of the probe, in the order of the trace.
  const std::vector<std::size_t>& events() const { return events_; }
  /// After the whole engine had said that it is ready; never, where it did not.
  bool after_ready(const trace::Event& event) const;
  /// kNotApplicable where nobody asked for a probe, kNotObserved where none attached or the engine
  /// was never ready and `ready_needed`; nothing where the contract can be judged.
  std::optional<Result> not_judged(std::string_view contract, bool ready_needed) const;
  /// What limits a judgement of what came after ready; "" if nothing does.
  std::string limit() const;

 private:
  const View& view_;
  std::vector<std::size_t> events_;
  std::optional<std::int64_t> ready_ns_;
  bool attached_ = false, asked_ = false, detached_ = false;
  std::string in_the_way_;
};

}  // namespace warmgate::contract
