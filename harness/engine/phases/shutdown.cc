#include <fmt/format.h>

#include <stdexcept>

#include "harness/engine/phases/host_usage.h"
#include "harness/engine/phases/phases.h"
#include "harness/engine/phases/state.h"

namespace warmgate::engine::phases {

void shutdown(Session& s) {
  tell_state(s, "after serve");
  if (s.model->free_blocks() != s.all_blocks)
    throw std::logic_error(
        fmt::format("{} of {} KV blocks came back", s.model->free_blocks(), s.all_blocks));
  if (const std::int64_t held = s.memory->live() - s.memory->persistent_bytes(); held != 0)
    throw std::logic_error(fmt::format("{} bytes of step memory are still held", held));
  // Workers of a few milliseconds end before anybody could look at them from outside.
  if (const std::int64_t peak = peak_rss_bytes(); peak > 0)
    s.recorder.counter("peak_rss_bytes", static_cast<double>(peak));
  s.barrier();
  s.model.reset();
  s.kernels.reset();
  // Everything else lasts as long as the engine does, and goes with it.
  s.memory->give_back_all();
  if (s.memory->live() != 0)
    throw std::logic_error(
        fmt::format("{} bytes of device memory are still held", s.memory->live()));
}

}  // namespace warmgate::engine::phases
