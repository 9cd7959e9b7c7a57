// What layers, phases and ops share within one rank.
#pragma once

#include "harness/engine/jit/kernel_set.h"
#include "harness/engine/parallel/collectives.h"
#include "harness/engine/recorder.h"
#include "harness/scenario/resolved.h"

namespace warmgate::engine {

class DeviceMemory;  // memory/device_memory.h
class Workspace;     // memory/workspace.h
class Observer;      // ops/observer.h
class OpClock;       // ops/op_clock.h

struct Context {
  const scenario::Resolved& config;
  Recorder& recorder;
  DeviceMemory& memory;
  Workspace& workspace;
  Collectives& collectives;
  KernelSet& kernels;
  /// Told of ops that ran, where they execute; null: nobody.
  Observer* observer = nullptr;
  /// Takes the time of ops that ran; null: nobody wants it.
  OpClock* clock = nullptr;
  /// Value of a seam; every seam is present (resolved.seams).
  bool seam_is(const char* name, const char* value) const { return config.seams.at(name) == value; }
};

}  // namespace warmgate::engine
