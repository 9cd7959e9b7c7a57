#include "harness/engine/ops/device.h"

namespace warmgate::engine {

namespace {

class Meta final : public Device {
 public:
  std::string_view name() const override { return "meta"; }
  bool executes() const override { return false; }
};

}  // namespace

const Device& device_named(std::string_view name) {
  static const Meta meta;
  if (name == meta.name()) return meta;
  throw std::runtime_error("device '" + std::string(name) + "': this engine has ops for meta only");
}

}  // namespace warmgate::engine
