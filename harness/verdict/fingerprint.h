// What makes two failures the same failure. Layer numbers and ranks are no part of it, so that a
// reduced model and another rank still show the same fault.
#pragma once

#include <optional>

#include "harness/verdict/verdict.h"

namespace warmgate::verdict {

/// Of a run that failed, crashed or hung; nothing for any other outcome. Frames of a crash are the
/// fault's own function and stack, without those that every crash has (abort, raise, the
/// interpreter's, allocators); of a broken contract the kernel or resource with the layer kind.
std::optional<Fingerprint> make_fingerprint(const RunRecord& run);

/// Equal, or at least two frames agree in order.
[[nodiscard]] bool same(const Fingerprint& a, const Fingerprint& b);

}  // namespace warmgate::verdict
