// Bodies that a client compressed (Content-Encoding: gzip).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace warmgate::target {

enum class Gunzip { kDone, kBroken, kTooLarge };

/// One member of RFC 1952 with its checksum held against what came out; `out` grows to `most` bytes
/// and no further. More behind the member is kBroken. Never throws for what the bytes are.
Gunzip gunzip(std::string_view bytes, std::size_t most, std::string& out);

}  // namespace warmgate::target
