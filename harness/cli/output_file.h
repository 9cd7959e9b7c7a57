// Files that a command writes: whole or not at all.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace warmgate::cli {

/// Writes beside the file and renames, so that a reader sees the old text or the new one. A link is
/// followed; what is no regular file (/dev/stdout, a fifo) is written to directly. Throws
/// std::runtime_error naming the path and the reason.
void write_file(const std::filesystem::path& path, std::string_view text);

/// Throws what write_file() would, without touching the file: said before minutes of work, not
/// after.
void check_writable(const std::filesystem::path& path);

/// Adds to the end of a file that shall stay within `limit` bytes: `text` is asked for what fits
/// into the room that is left. A file that is not there is made. Throws as write_file().
void append_file(const std::filesystem::path& path, std::size_t limit,
                 const std::function<std::string(std::size_t room)>& text);

/// True if both names lead to one file, there or yet to be made, through links and dots.
bool same_file(const std::filesystem::path& a, const std::filesystem::path& b);

}  // namespace warmgate::cli
