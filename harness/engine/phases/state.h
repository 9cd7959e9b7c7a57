// What start-up says about its own state, and proves about the contents of its dummy steps.
#pragma once

#include <string>

#include "harness/engine/phases/session.h"

namespace warmgate::engine::phases {

/// `state` now, by the name `at`: free blocks, requests that hold some, and where tensors have
/// contents the null block's digest and NaNs. All of them are to be as they were the first time.
void tell_state(Session& session, const char* at);

/// On a device that executes, and unless checks are off: from begin() to end() each dummy step
/// finds its inputs, tables, slots, indices and the null block filled with 0xFF (-1, NaN), 0x7F
/// (large) or 0x00 in turn, and the same short request runs before and after. `poisoned` says what
/// it gave. No step runs that warmup would not run anyway, but for that request, which is shaped as
/// warmup's own scheduled one. Origin of the fault that this looks for: NVIDIA/TensorRT-LLM#5947.
class SpoiledContents {
 public:
  explicit SpoiledContents(Session& session) : s_(session) {}
  void begin();
  void end();

 private:
  std::string probe();
  Session& s_;
  std::string before_;
};

}  // namespace warmgate::engine::phases
