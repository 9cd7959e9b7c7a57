// Where the time goes: wall time, bytes and FLOPs by kernel, of ops that execute. Off unless asked
// for (WARMGATE_OP_TIMES in the engine's environment): two looks at the clock an op.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "harness/engine/ops/cost.h"
#include "harness/engine/recorder.h"

namespace warmgate::engine {

class OpClock {
 public:
  void add(std::string_view kernel, std::int64_t ns, const Cost& cost) {
    auto it = used_.find(kernel);
    if (it == used_.end()) it = used_.emplace(std::string(kernel), Use{}).first;
    ++it->second.calls;
    it->second.ns += ns;
    it->second.cost += cost;
  }
  /// One `op_time` a kernel of the phase that ends: calls, ns, bytes, flops. Starts anew.
  void send(Recorder& recorder) {
    for (const auto& [kernel, use] : used_) {
      trace::Line line("op_time");
      line.str("kernel", kernel).str("phase", recorder.phase()).num("calls", use.calls);
      line.num("ns", use.ns).num("bytes", use.cost.bytes).num("flops", use.cost.flops);
      recorder.send(line);
    }
    used_.clear();
  }

 private:
  struct Use {
    std::int64_t calls = 0, ns = 0;
    Cost cost;
  };
  std::map<std::string, Use, std::less<>> used_;
};

}  // namespace warmgate::engine
