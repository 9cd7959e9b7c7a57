#include "reports/terminal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "reports/ab.h"
#include "reports/key_words.h"
#include "reports/sample_report.h"
#include "reports/words.h"

namespace warmgate::reports {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr Style kPlain{.colour = false, .charset = Charset::kUtf8, .width = 100};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

TEST(Terminal, Golden) {
  const Sample s = sample_report();
  expect_golden("terminal.txt", terminal_report(s.report, kPlain));
  expect_golden("terminal_verbose.txt", terminal_report(s.report, kPlain, Detail::kVerbose));
  expect_golden("terminal_quiet.txt", terminal_report(s.report, kPlain, Detail::kQuiet));
  expect_golden("terminal_ascii.txt",
                terminal_report(s.report, {false, Charset::kAscii, 60}, Detail::kNormal));
}

TEST(Terminal, ColourOnlyWhereAsked) {
  const Sample s = sample_report();
  const std::string plain = terminal_report(s.report, kPlain);
  EXPECT_THAT(plain, Not(HasSubstr("\x1b")));
  std::string coloured = terminal_report(s.report, {true, Charset::kUtf8, 100});
  EXPECT_THAT(coloured, HasSubstr("\x1b[1;31mFAIL"));
  // Nothing but colour differs, and every colour is taken back.
  std::string stripped;
  int open = 0;
  for (std::size_t i = 0; i < coloured.size(); ++i) {
    if (coloured[i] != '\x1b') {
      stripped += coloured[i];
      continue;
    }
    const std::size_t end = coloured.find('m', i);
    open = coloured.substr(i, end - i) == "\x1b[0" ? 0 : 1;
    i = end;
  }
  EXPECT_EQ(stripped, plain);
  EXPECT_EQ(open, 0);
}

TEST(Terminal, SaysWhatBrokeAndWhoLacksWhat) {
  const std::string text = terminal_report(sample_report().report, kPlain);
  EXPECT_THAT(text, HasSubstr("crashed in profile"));
  EXPECT_THAT(text, HasSubstr("layers 43,44,45 (draft, swaonly) own no topk_indices_buffer"));
  EXPECT_THAT(text, HasSubstr("swa_cache, attn_sink"));
  EXPECT_THAT(text, HasSubstr("9,222,468"));
  EXPECT_THAT(text, HasSubstr("rev A warms width 8192 only"));
  EXPECT_THAT(text, HasSubstr("as modelled here"));
}

TEST(Terminal, EveryFailureNamesItsCommandOnOneLine) {
  const Sample s = sample_report();
  for (const std::size_t width : {40u, 100u}) {
    const auto lines = lines_of(terminal_report(s.report, {false, Charset::kUtf8, width}));
    for (const ScenarioReport& scenario : s.report.scenarios) {
      for (const VariantReport& v : scenario.variants) {
        if (!wants_command(v)) continue;
        const std::string command = "repeat: " + v.runs.front()->reproduce;
        EXPECT_TRUE(std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
          return line.ends_with(command);
        })) << command;
      }
    }
  }
}

TEST(Terminal, LinesFitTheWidth) {
  const std::string text = terminal_report(sample_report().report, {false, Charset::kUtf8, 72});
  for (const std::string& line : lines_of(text)) {
    const bool free = line.find("repeat") != std::string::npos ||
                      line.find(".yaml") != std::string::npos;  // commands and paths stay whole
    if (!free) {
      EXPECT_LE(columns(line), 72u) << line;
    }
  }
}

TEST(Terminal, HostileTextStaysText) {
  const Sample s = hostile_report();
  for (const Charset charset : {Charset::kUtf8, Charset::kAscii}) {
    for (const Detail detail : {Detail::kNormal, Detail::kVerbose}) {
      for (const std::string& text : {terminal_report(s.report, {false, charset, 80}, detail),
                                      ab_report(s.report, {false, charset, 80}, detail)}) {
        EXPECT_EQ(valid_utf8(text), text);
        for (const char c : text) {
          const auto byte = static_cast<unsigned char>(c);
          EXPECT_TRUE(byte >= 0x20 || c == '\n') << static_cast<int>(byte);
          EXPECT_NE(byte, 0x7f);
          if (charset == Charset::kAscii) {
            EXPECT_LT(byte, 0x80);
          }
        }
        EXPECT_THAT(text, Not(HasSubstr("\xc2\x9b")));
        EXPECT_THAT(text, Not(HasSubstr("\xe2\x80\xae")));
        EXPECT_THAT(text, Not(HasSubstr("hunter2")));
        EXPECT_THAT(text, Not(HasSubstr("##[")));
        EXPECT_THAT(text, Not(HasSubstr("##vso[")));
        for (const std::string& line : lines_of(text)) {
          const std::size_t first = line.find_first_not_of(' ');
          if (first != std::string::npos) {
            EXPECT_NE(line.compare(first, 2, "::"), 0) << line;
          }
        }
      }
    }
  }
}

TEST(Terminal, AnEmptyReportIsStillAReport) {
  Report empty;
  empty.verb = "gate";
  empty.interrupted = true;
  const std::string text = terminal_report(empty, kPlain);
  EXPECT_THAT(text, HasSubstr("INCONCLUSIVE"));
  EXPECT_THAT(text, HasSubstr("interrupted"));
  EXPECT_THAT(ab_report(empty, kPlain), HasSubstr("INCONCLUSIVE"));
}

TEST(Ab, Golden) {
  Sample s = sample_report();
  s.report.verb = "ab";
  s.report.scenarios.resize(1);
  ScenarioReport& one = s.report.scenarios.front();
  one.verdict = s.report.verdict = verdict::Verdict::kPass;
  one.reason = "B passed, and nothing that the gate names is worse";
  one.checks = {{"gate kv_bytes regress", "", "", verdict::Verdict::kSkip, "A did not reach it"}};
  expect_golden("ab.txt", ab_report(s.report, kPlain));
}

TEST(Words, LayersAreDrawnTogether) {
  EXPECT_EQ(layers_text({43}), "layer 43");
  EXPECT_EQ(layers_text({45, 43, 44, 43}), "layers 43,44,45");
  EXPECT_EQ(layers_text({0, 1, 2, 3, 7}), "layers 0-3,7");
}

TEST(Words, RepeatsThatDisagreeAreCounted) {
  Sample s = sample_report();
  VariantReport v = s.report.scenarios[0].variants[0];
  EXPECT_EQ(disagreement_text(v), "");
  v.runs = {&s.runs[0], &s.runs[1], &s.runs[1]};
  EXPECT_EQ(disagreement_text(v), "1 of 3 runs crashed in profile, 2 of 3 runs passed");
  EXPECT_EQ(telling_run(v), &s.runs[0]);
  v.runs.clear();
  EXPECT_EQ(telling_run(v), nullptr);
}

TEST(Words, KeysAreToldByWhatSetsThemApart) {
  verdict::RunRecord run;
  run.sets["keys_warmed"] = {"K{A=1,R=0,D=1}", "K{A=2,R=0,D=1}", "K{A=1,R=4,D=1}", "L{R=0}"};
  EXPECT_EQ(short_key({"K{A=1,R=0,D=1}", "K{A=2,R=0,D=1}"}, &run), "K{R=0,…}");
  EXPECT_EQ(short_key({"K{A=1,R=4,D=1}"}, &run), "K{A=1,R=4,…}");
  EXPECT_EQ(short_key({"K{A=1,R=0,D=1}"}, nullptr), "K{A=1,R=0,D=1}");
  EXPECT_EQ(short_key({"L{R=0}"}, &run), "L{R=0}");
  EXPECT_EQ(short_key({"K{A=1,R=0,D=1}", "K{A=2,R=4,D=1}"}, &run), "K{…}");
  EXPECT_EQ(short_key({"no key", "K{}"}, &run), "no key, K{}");
  EXPECT_EQ(short_key({"a", "b", "c", "d", "e"}, &run), "a, b, c and 2 more");
  EXPECT_EQ(short_key({"K{A", "}"}, &run), "K{A, }");
  EXPECT_EQ(with_short_keys("skipped by K{A=1,R=4,D=1}: x", run), "skipped by K{A=1,R=4,…}: x");
  EXPECT_EQ(short_key({}, &run), "");
  std::vector<contract::Finding> findings;
  for (const char* key : {"K{A=1,R=0,D=1}", "K{A=2,R=0,D=1}"})
    findings.push_back(sample_finding("keys-valid", key, std::string(key) + " divides by zero"));
  const auto groups = group_findings(findings);
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(proof_text(groups[0], &run), "K{R=0,…} (2 keys) divides by zero");
  findings.push_back(sample_finding("keys-valid", "L{R=0}", "L{R=0} divides by zero"));
  EXPECT_EQ(group_findings(findings).size(), 2u);  // another kernel is another finding
}

TEST(Words, AMessageThatNamesItsLayersIsLeftAlone) {
  contract::Finding f = sample_finding("workspace-fits", "c128a/attention", "layer 7 asks 9 bytes");
  f.layer = 7;
  EXPECT_EQ(proof_text(group_findings({f}).at(0)), "layer 7 asks 9 bytes");
  f.message = "asks 9 bytes";
  f.layer_kind = "c128a";
  EXPECT_EQ(proof_text(group_findings({f}).at(0)), "layer 7 (c128a): asks 9 bytes");
  f.message = "";
  EXPECT_THAT(proof_text(group_findings({f}).at(0)), HasSubstr("expected as promised, seen"));
}

}  // namespace
}  // namespace warmgate::reports
