// Text that came from somewhere else (logs, scenario files, exception messages) on its way to a
// person, a terminal, a CI's log reader. Nothing in it may move a cursor, end a line, start a
// runner's command or reverse the reading direction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "harness/trace/quantity.h"
#include "harness/trace/secrets.h"

namespace warmgate::reports {

enum class Charset { kUtf8, kAscii };

/// Invalid bytes (also overlong forms and surrogates) become U+FFFD, one for each byte.
std::string valid_utf8(std::string_view text);

/// One line, safe on any terminal: control characters (C0, DEL, C1), line and paragraph separators
/// and bidirectional overrides are written as escapes (`\n`, `\x1b`, `\u202e`); tabs become blanks.
/// With kAscii every other character is transliterated or escaped.
std::string printable(std::string_view text, Charset charset = Charset::kUtf8);

/// Columns that valid UTF-8 without control characters takes: 0 for combining marks, 2 for wide
/// East Asian characters and emoji, else 1.
std::size_t columns(std::string_view text);

/// At most `width` columns, the cut marked with "…" ("..." in ASCII).
std::string shorten(std::string_view text, std::size_t width, Charset charset = Charset::kUtf8);

/// Lines of at most `width` columns (at least 8), broken at blanks; inside a word only if it does
/// not fit alone, then after a comma, slash or semicolon where there is one. At least one line.
std::vector<std::string> wrap(std::string_view text, std::size_t width);

/// Makes a whole output line harmless for CI log readers: a line that begins with `::` (GitHub
/// Actions) gets a backslash in front, and `##[`, `##vso[`, `##teamcity[` lose their meaning.
std::string without_ci_commands(std::string line);

using trace::kMask;
/// Replaces each secret by kMask, and what is one by its shape. Values shorter than 4 bytes are
/// left: they would shred the text.
std::string mask(std::string_view text, const std::vector<std::string>& secrets);

/// JSON whose characters that are unsafe to show stand as escapes: what it means stays the same,
/// and whoever prints the file sees it.
std::string json_shown_safely(std::string_view json);
/// The same of YAML whose foreign text stands in double quotes and comments.
std::string yaml_shown_safely(std::string_view yaml);

using trace::duration_text;
using trace::figure_text;
using trace::grouped;

}  // namespace warmgate::reports
