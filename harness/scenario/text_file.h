// Reading a file that somebody else wrote: bounded, regular, UTF-8.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace warmgate::scenario {

class Problems;

/// True for a regular file and for a descriptor of our own (a shell's <(…), /dev/stdin). Any other
/// pipe or device that somebody names may never end.
bool ends_somewhere(const std::filesystem::path& path);

/// The bytes of a regular file of at most kMaxFileBytes, else nothing and a problem. Opened without
/// blocking, so a pipe or a device is refused rather than waited for.
std::optional<std::string> read_text(const std::filesystem::path& path, const std::string& shown_as,
                                     Problems& problems);

/// UTF-8 without NUL, at most kMaxFileBytes, no tab in the indentation of a line: what yaml-cpp
/// would misread or read without a word. False, with a problem at the place, otherwise.
bool check_text(std::string_view text, const std::shared_ptr<const std::string>& file,
                Problems& problems);

/// Offset of the first byte that is not part of valid UTF-8 (no overlong forms, no surrogates,
/// nothing beyond U+10FFFF), npos if all is valid.
std::size_t invalid_utf8(std::string_view text);

}  // namespace warmgate::scenario
