// Does an address lie in code or data that the loader mapped from a file?
#pragma once

#include <string>

namespace warmgate::probe {

/// The file that the shared object or program holding `address` was loaded from, "" if it lies in
/// none: heap, or a mapping of the process's own. No allocation but the answer's.
std::string object_with(const void* address);

}  // namespace warmgate::probe
