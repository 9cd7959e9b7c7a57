// What this process takes of the host.
#pragma once

#include <cstdint>

namespace warmgate::engine {

/// Largest resident set so far, bytes; 0 where /proc does not tell. Of this program alone: what
/// getrusage() says also counts the process that started it, before the exec.
std::int64_t peak_rss_bytes();

}  // namespace warmgate::engine
