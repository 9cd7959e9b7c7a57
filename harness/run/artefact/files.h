// Reading files that may be anything: of bounded size, never a device or a pipe.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace warmgate::run {

/// The first `most` bytes of a regular file; "" if it is none, or cannot be read.
std::string read_bounded(const std::filesystem::path& path, std::size_t most);

/// Lower-case hex of the SHA-256 of a regular file of any size; "" if it cannot be read.
std::string sha256_of(const std::filesystem::path& path);

/// Writes beside `path`, then renames: there is never half a file. Throws std::system_error.
void write_whole(const std::filesystem::path& path, const std::string& text);

/// SHA-256 over path, size and time of change of every file below `root`, links followed for size
/// and time, compiled bytecode (__pycache__) left out: says whether anything was touched since.
std::string listing_hash(const std::filesystem::path& root);

}  // namespace warmgate::run
