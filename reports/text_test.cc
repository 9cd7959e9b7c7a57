#include "reports/text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace warmgate::reports {
namespace {

TEST(Text, InvalidUtf8BecomesReplacementCharacters) {
  EXPECT_EQ(valid_utf8("plain"), "plain");
  EXPECT_EQ(valid_utf8("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"),
            "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
  EXPECT_EQ(valid_utf8("a\x80z"), "a\xef\xbf\xbdz");
  EXPECT_EQ(valid_utf8("\xc0\xaf"), "\xef\xbf\xbd\xef\xbf\xbd");                  // overlong
  EXPECT_EQ(valid_utf8("\xed\xa0\x80"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");  // surrogate
  EXPECT_EQ(valid_utf8("\xe2\x82"), "\xef\xbf\xbd\xef\xbf\xbd");                  // cut off
  EXPECT_EQ(valid_utf8("\xf4\x90\x80\x80").size(), 12u);                          // above U+10FFFF
  EXPECT_EQ(valid_utf8(""), "");
}

TEST(Text, PrintableLeavesNothingThatATerminalObeys) {
  EXPECT_EQ(printable("a\tb\nc\r"), "a b\\nc\\r");
  EXPECT_EQ(printable("\x1b[31m"), "\\x1b[31m");
  EXPECT_EQ(printable(std::string("\0\x7f", 2)), "\\x00\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"), "\\u009b");              // C1: CSI in one character
  EXPECT_EQ(printable("\xe2\x80\xae"), "\\u202e");          // right-to-left override
  EXPECT_EQ(printable("\xe2\x80\xa8"), "\\u2028");          // line separator
  EXPECT_EQ(printable("\xf3\xa0\x81\x81"), "\\U000e0041");  // tag characters: invisible text
  EXPECT_EQ(printable("é ± 日"), "é ± 日");
  EXPECT_EQ(printable("8.80 ± 0.1% · é…", Charset::kAscii), "8.80 +- 0.1% - \\u00e9...");
  for (unsigned char c : printable("\x80\xff日本\n\x1b", Charset::kAscii)) EXPECT_LT(c, 0x7f);
}

TEST(Text, JsonMeansTheSameAndShowsNothingByItself) {
  const std::string hostile =
      "a\"\\\n\x7f\xc2\x9b \xe2\x80\xae \xe2\x80\xa8 \xe2\x81\xa7 \xf3\xa0\x81\x81 \xef\xbb\xbf "
      "é日";
  const nlohmann::json value = {{hostile, hostile}, {"b", {1, "ü"}}};
  const std::string text = json_shown_safely(value.dump(2));
  EXPECT_EQ(nlohmann::json::parse(text), value);
  for (const char* raw : {"\x7f", "\xc2\x9b", "\xe2\x80\xae", "\xe2\x80\xa8", "\xe2\x81\xa7",
                          "\xf3\xa0\x81\x81", "\xef\xbb\xbf"})
    EXPECT_EQ(text.find(raw), std::string::npos) << raw;
  EXPECT_NE(text.find("é日"), std::string::npos);
  EXPECT_EQ(yaml_shown_safely("a: \"\xf3\xa0\x81\x81\xe2\x80\xae\"\n"),
            "a: \"\\U000e0041\\u202e\"\n");
}

TEST(Text, ColumnsCountWideAndCombiningCharacters) {
  EXPECT_EQ(columns("abc"), 3u);
  EXPECT_EQ(columns("日本"), 4u);
  EXPECT_EQ(columns("e\xcc\x81"), 1u);
  EXPECT_EQ(columns("\x80"), 1u);
}

TEST(Text, ShortenFitsAndMarksTheCut) {
  EXPECT_EQ(shorten("abcdef", 6), "abcdef");
  EXPECT_EQ(shorten("abcdefg", 6), "abcde…");
  EXPECT_EQ(shorten("abcdefg", 6, Charset::kAscii), "abc...");
  EXPECT_EQ(shorten("日本語", 4), "日…");
  EXPECT_EQ(shorten("abc", 0), "");
}

TEST(Text, WrapNeverExceedsTheWidthNorLosesText) {
  EXPECT_EQ(wrap("", 20), std::vector<std::string>{""});
  EXPECT_EQ(wrap("one two three", 8), (std::vector<std::string>{"one two", "three"}));
  EXPECT_EQ(wrap("abcdefghijkl", 8), (std::vector<std::string>{"abcdefgh", "ijkl"}));
  const std::string text = "a key CombineTopkSwaIndices{COMPRESS_RATIO=128,TOP_K=8192} and words";
  for (std::size_t width = 8; width < 80; ++width) {
    std::string all;
    for (const std::string& line : wrap(text, width)) {
      EXPECT_LE(columns(line), width);
      all += line;
    }
    std::string without_blanks;
    for (char c : text) without_blanks += c == ' ' ? "" : std::string(1, c);
    std::erase(all, ' ');
    EXPECT_EQ(all, without_blanks);
  }
}

TEST(Text, CiCommandsLoseTheirMeaning) {
  EXPECT_EQ(without_ci_commands("::error::x"), "\\::error::x");
  EXPECT_EQ(without_ci_commands("   ::error::x"), "   \\::error::x");
  EXPECT_EQ(without_ci_commands("std::vector"), "std::vector");
  EXPECT_EQ(without_ci_commands("a ##[error]b").find("##["), std::string::npos);
  EXPECT_EQ(without_ci_commands("##vso[task.setvariable]").find("##vso["), std::string::npos);
  EXPECT_EQ(without_ci_commands("###[group]").find("##["), std::string::npos);
}

TEST(Text, MaskReplacesEveryOccurrence) {
  EXPECT_EQ(mask("a hunter2 b hunter2", {"hunter2"}), "a [secret] b [secret]");
  EXPECT_EQ(mask("aaa", {"a"}), "aaa");  // too short to be told from ordinary text
  EXPECT_EQ(mask("x", {""}), "x");
  EXPECT_EQ(mask("[secret]", {"secret"}), "[[secret]]");  // and it ends
}

TEST(Text, NumbersForPeople) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(9222468), "9,222,468");
  EXPECT_EQ(grouped(-1000), "-1,000");
  EXPECT_EQ(grouped(std::numeric_limits<std::int64_t>::min()), "-9,223,372,036,854,775,808");
  EXPECT_EQ(figure_text("kv_tokens", 9222468), "9,222,468");
  EXPECT_EQ(figure_text("concurrency", 8.7952), "8.80x");
  EXPECT_EQ(figure_text("kv_bytes", 95007340800.0), "95,007,340,800 (88.48 GiB)");
  EXPECT_EQ(figure_text("kv_bytes", 12), "12 B");
  EXPECT_EQ(figure_text("kv_bytes", 901943132.2), "901,943,132 (860.16 MiB)");
  EXPECT_EQ(figure_text("time_to_ready_s", 0.0284), "28 ms");
  EXPECT_EQ(figure_text("weights_gib", 76.25, "GiB"), "76.25 GiB");
  EXPECT_EQ(figure_text("unknown", std::nan("")), "?");
  EXPECT_EQ(figure_text("unknown", 1e300), "1e+300");
  EXPECT_EQ(duration_text(0), "0 ms");
  EXPECT_EQ(duration_text(0.00034), "0.34 ms");
  EXPECT_EQ(duration_text(0.00999), "10 ms");
  EXPECT_EQ(duration_text(0.9999), "1.00 s");
  EXPECT_EQ(duration_text(1.234), "1.23 s");
  EXPECT_EQ(duration_text(125), "2 min 5 s");
  EXPECT_EQ(duration_text(-1), "?");
}

}  // namespace
}  // namespace warmgate::reports
