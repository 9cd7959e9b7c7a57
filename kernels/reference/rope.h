// Rotary positions, from theta and YaRN's parameters; angles in double at any position.
#pragma once

#include "kernels/reference/matrix.h"

namespace warmgate::reference {

/// YaRN as DeepSeek-V4 configures it; its magnitude scale is off (factor 1).
struct Rope {
  double theta = 10000;
  bool yarn = true;
  double factor = 16, original_length = 65536, beta_fast = 32, beta_slow = 1;
  std::int64_t dims = 64;  // the last `dims` values of a head, in pairs (2i, 2i+1)
};

/// What window-only layers (ratio 1) do. yarn: the rope builder of vLLM at d40c3e3c00 keeps the
/// YaRN type with theta 10000. plain: DeepSeek's inference/model.py interpolates only where ratio
/// > 1.
enum class WindowRope { yarn, plain };

/// theta 160000 for ratio > 1, 10000 for ratio 1 and YaRN as `choice` says there. The other
/// parameters are those of the published configs; overwrite them for other models.
Rope rope_of_layer(std::int64_t ratio, WindowRope choice);

/// dims/2 angles per position step.
Vector inverse_frequencies(const Rope& rope);

/// One row of the table: dims/2 cosines, then dims/2 sines.
Vector cos_sin(const Rope& rope, std::int64_t position);

/// Rotates the last `dims` values of one head by the position: e' = e cos - o sin, o' = o cos + e
/// sin.
Vector rotate(View head, const Rope& rope, std::int64_t position);

/// The inverse: e' = e cos + o sin, o' = o cos - e sin.
Vector unrotate(View head, const Rope& rope, std::int64_t position);

/// The same for all heads of one token, heads * head_dim values.
Vector rotate_heads(View heads, std::int64_t head_dim, const Rope& rope, std::int64_t position);
Vector unrotate_heads(View heads, std::int64_t head_dim, const Rope& rope, std::int64_t position);

}  // namespace warmgate::reference
