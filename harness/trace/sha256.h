// SHA-256 (FIPS 180-4), for identities, cache addresses and fingerprints. Our own because the
// engine and the probes link nothing, and because the GPU machines carry no OpenSSL headers.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace warmgate::trace {

/// Lower-case hex of the 32-byte digest.
std::string sha256_hex(std::string_view data);

}  // namespace warmgate::trace
