// Where ops run. This folder alone names devices: layers, phases, allocators and dispatch call ops
// through Executor and cannot tell one device from another.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace warmgate::engine {

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string_view name() const = 0;
  /// False where shapes and accounting are all there is: ops are checked and counted, never run.
  virtual bool executes() const = 0;
};

/// "meta": shapes and accounting. Throws std::runtime_error for a device this build has no ops for.
const Device& device_named(std::string_view name);

}  // namespace warmgate::engine
