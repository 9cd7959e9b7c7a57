#include "reports/junit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <string_view>

#include "reports/sample_report.h"
#include "reports/text.h"

namespace warmgate::reports {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// True if the text holds markup, or an ampersand that begins none of the five entities.
bool bad_text(std::string_view part) {
  for (std::size_t i = 0; i < part.size(); ++i) {
    if (part[i] == '<' || part[i] == '>') return true;
    if (part[i] != '&') continue;
    bool entity = false;
    for (const std::string_view name : {"&amp;", "&lt;", "&gt;", "&quot;", "&apos;"})
      entity = entity || part.substr(i, name.size()) == name;
    if (!entity) return true;
  }
  return false;
}

// True for ` name="value"` any number of times, then perhaps a slash.
bool attributes(std::string_view rest) {
  const auto skip_blanks = [&] {
    const std::size_t before = rest.size();
    while (!rest.empty() && (rest[0] == ' ' || rest[0] == '\n')) rest.remove_prefix(1);
    return rest.size() < before;
  };
  while (skip_blanks() && !rest.empty() && rest != "/") {
    std::size_t name = 0;
    while (name < rest.size() && std::islower(static_cast<unsigned char>(rest[name])) != 0) ++name;
    if (name == 0 || rest.substr(name, 2) != "=\"") return false;
    const std::size_t end = rest.find_first_of("\"<", name + 2);
    if (end == std::string_view::npos || rest[end] == '<') return false;
    rest.remove_prefix(end + 1);
  }
  return rest.empty() || rest == "/";
}

// A strict reader of the XML that we write: declaration, elements, double-quoted attributes, text.
// Returns what is wrong, "" if it is well-formed.
std::string xml_problem(const std::string& text) {
  if (valid_utf8(text) != text) return "not UTF-8";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 && c != '\n' && c != '\t') return "an illegal character";
  }
  if (text.find("\xef\xbf\xbe") != std::string::npos ||
      text.find("\xef\xbf\xbf") != std::string::npos)
    return "U+FFFE or U+FFFF";
  std::size_t at = text.find("?>");
  if (text.rfind("<?xml version=\"1.0\" encoding=\"UTF-8\"?>", 0) != 0) return "no declaration";
  at += 2;
  std::vector<std::string> open;
  int roots = 0;
  while (at < text.size()) {
    const std::size_t tag = text.find('<', at);
    const std::string between = text.substr(at, tag == std::string::npos ? tag : tag - at);
    if (bad_text(between)) return "markup in text: " + between;
    if (tag == std::string::npos) break;
    const std::size_t end = text.find('>', tag);
    if (end == std::string::npos) return "a tag without end";
    const std::string inside = text.substr(tag + 1, end - tag - 1);
    at = end + 1;
    if (inside[0] == '/') {
      if (open.empty() || open.back() != inside.substr(1)) return "unbalanced " + inside;
      open.pop_back();
      continue;
    }
    const std::size_t name_end = inside.find_first_of(" /");
    const std::string name = inside.substr(0, name_end);
    const std::string rest = name_end == std::string::npos ? "" : inside.substr(name_end);
    if (!attributes(rest)) return "attributes: " + rest;
    if (bad_text(rest)) return "markup in an attribute: " + rest;
    if (open.empty()) ++roots;
    if (inside.back() != '/') open.push_back(name);
  }
  if (!open.empty()) return "not closed: " + open.back();
  return roots == 1 ? "" : "not one root";
}

TEST(Junit, Golden) { expect_golden("report.xml", junit_text(sample_report().report)); }

TEST(Junit, IsWellFormed) {
  EXPECT_EQ(xml_problem(junit_text(sample_report().report)), "");
  EXPECT_EQ(xml_problem(junit_text(Report{})), "");
}

TEST(Junit, TheReaderCanRefuse) {
  EXPECT_NE(xml_problem("<a/>"), "");
  const std::string head = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>";
  EXPECT_EQ(xml_problem(head + "<a b=\"c\">d</a>\n"), "");
  EXPECT_NE(xml_problem(head + "<a>]]></a>"), "");
  EXPECT_NE(xml_problem(head + "<a>&nbsp;</a>"), "");
  EXPECT_NE(xml_problem(head + "<a><b></a></b>"), "");
  EXPECT_NE(xml_problem(head + "<a b=\"\x1b\"/>"), "");
}

TEST(Junit, HostileTextIsText) {
  const std::string text = junit_text(hostile_report().report);
  EXPECT_EQ(xml_problem(text), "");
  EXPECT_THAT(text, Not(HasSubstr("hunter2")));
  EXPECT_THAT(text, Not(HasSubstr("]]>")));
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) EXPECT_NE(line.rfind("::", 0), 0u) << line;
}

TEST(Junit, EachVerdictHasItsMark) {
  const std::string text = junit_text(sample_report().report);
  EXPECT_THAT(text, HasSubstr(R"(<failure type="FAIL")"));
  EXPECT_THAT(text, HasSubstr(R"(<error type="INCONCLUSIVE")"));
  EXPECT_THAT(text, HasSubstr(R"(<error type="INFRA")"));
  EXPECT_THAT(text, HasSubstr("<skipped message=\"needs 1 GPU, there is none\"/>"));
  // fail and the scenario's own check; doubt and infra; skip.
  EXPECT_THAT(text, HasSubstr(R"(tests="7" failures="2" errors="2" skipped="1")"));
}

TEST(Junit, SoftVerdictsAreSkipped) {
  Sample s = sample_report();
  s.report.soft = {verdict::Verdict::kFail, verdict::Verdict::kInconclusive};
  const std::string text = junit_text(s.report);
  EXPECT_THAT(text, HasSubstr(R"(failures="0" errors="1" skipped="4")"));
  EXPECT_THAT(text, HasSubstr("<skipped message=\"INCONCLUSIVE: "));
}

TEST(Junit, AnsiSequencesAreDropped) {
  EXPECT_EQ(xml_text("\x1b[1;31mred\x1b[0m"), "red");
  EXPECT_EQ(xml_text("\x1b]0;title\x07text"), "text");
  EXPECT_EQ(xml_text("\x1b"), "\xef\xbf\xbd");
  EXPECT_EQ(xml_text("a\xef\xbf\xbf"
                     "b"),
            "a\xef\xbf\xbd"
            "b");
  EXPECT_EQ(xml_text("<a href='x'>&\"]]>"), "&lt;a href=&apos;x&apos;&gt;&amp;&quot;]]&gt;");
}

}  // namespace
}  // namespace warmgate::reports
