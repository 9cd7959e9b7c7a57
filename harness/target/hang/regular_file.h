// Files in a folder that the processes under test may write into, too: what they left there may be
// a pipe that nobody writes to, or a link to somewhere else.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace warmgate::target {

/// At most `most` bytes of a regular file from `from` on; "" for anything that is none, without
/// waiting and without following a link.
std::string read_regular(const std::filesystem::path& file, std::size_t most,
                         std::uintmax_t from = 0);

}  // namespace warmgate::target
