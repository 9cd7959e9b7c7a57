// The texts of kernels/jit/bodies/, carried inside the program: NVRTC compiles them, cache
// addresses hash them. Defined in a file that the build writes (kernels/CMakeLists.txt).
#pragma once

#include <string_view>

namespace warmgate::jit::sources {

extern const std::string_view device_prelude;
extern const std::string_view compute_prefill_metadata;
extern const std::string_view build_prefill_chunk_metadata;
extern const std::string_view combine_topk_swa_indices;

}  // namespace warmgate::jit::sources
