#include "reports/markdown.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "reports/markdown_reader.h"
#include "reports/sample_report.h"
#include "reports/text.h"

namespace warmgate::reports {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// What may turn into something in GitHub's Markdown, each with a word that must be found in code.
const std::vector<std::string>& tricks() {
  static const std::vector<std::string> list = {"ZQX | ZQX || \\| ZQX",
                                                "`ZQX` ``` ZQX ````",
                                                "```\nZQX\n```",
                                                "[ZQX](https://x.example)",
                                                "![ZQX](http://x/y.png)",
                                                "<script>ZQX</script>",
                                                "</details></td></table>ZQX",
                                                "@ZQX @team/ZQX",
                                                "owner/repo#1 GH-1 #1 ZQX",
                                                "https://x.example/ZQX",
                                                "$ZQX$ $`ZQX`$",
                                                "\n# ZQX\n---\n> ZQX\n",
                                                "`\\`ZQX\\",
                                                "&lt;ZQX&gt; &#96;ZQX",
                                                "<!-- ZQX",
                                                " ` ZQX",
                                                "ZQX `",
                                                "::error::ZQX",
                                                "::set-output name=ZQX::1",
                                                "::add-mask::ZQX",
                                                "]]>ZQX<![CDATA[",
                                                std::string("ZQX\0ZQX", 7),
                                                "\x1b[31mZQX\x1b[0m \xff\xfe",
                                                "ZQX\xe2\x80\xaeZQX"};
  return list;
}

Sample sample_of(const std::string& bad) {
  Sample s = sample_report();
  s.report.command = bad;
  s.report.not_observed = {bad};
  const auto spoil = [&](contract::Finding& f) {
    f.contract = f.phase = f.layer_kind = f.role = f.key = f.message = bad;
  };
  for (verdict::RunRecord& run : s.runs) {
    run.reason = run.phase = run.reproduce = run.signal_name = bad;
    for (contract::Result& result : run.contracts) {
      result.contract = result.why = bad;
      result.missing = {bad};
      for (contract::Finding& f : result.findings) spoil(f);
      for (contract::Finding& f : result.notes) spoil(f);
    }
    for (auto& allowed : run.allowed) {
      spoil(allowed.finding);
      allowed.reason = allowed.issue = bad;
    }
    run.outputs = {{0, bad, 3, bad, bad, {bad}}};
    run.figures[bad] = 1.5;
    run.figure_info[bad] = {bad, bad, bad};
    for (trace::Event& e : run.trace.events) {
      e.ev = e.src = e.source = bad;
      e.body = {{bad, bad}};
    }
  }
  for (ScenarioReport& scenario : s.report.scenarios) {
    scenario.name = scenario.path = scenario.selection = bad;
    scenario.checks.push_back({bad, bad, bad, verdict::Verdict::kFail, bad});
    for (VariantReport& v : scenario.variants) {
      v.name = v.base_name = v.device = bad;
      v.verdict.checks.push_back({bad, bad, bad, verdict::Verdict::kFail, bad});
      v.verdict.checks.push_back({bad, bad, bad, verdict::Verdict::kSkip, bad});
    }
    contract::Result comparison;
    comparison.contract = comparison.why = bad;
    comparison.state = contract::State::kBroken;
    comparison.findings.emplace_back();
    spoil(comparison.findings.back());
    scenario.comparisons.push_back(comparison);
  }
  return s;
}

TEST(Markdown, Golden) { expect_golden("summary.md", markdown_report(sample_report().report)); }

TEST(Markdown, WhatDecidesComesFirst) {
  const std::string text = markdown_report(sample_report().report);
  EXPECT_EQ(text.rfind("## ❌ FAIL · warmgate gate", 0), 0u);
  std::size_t last = 0;
  for (const char* part :
       {"| scenario | variant | verdict | outcome | phase | contract |", "### Findings",
        "layers 43,44,45 (draft, swaonly) own no topk_indices_buffer", "rank0:57 requires",
        "warmgate run scenarios/seeds/dspark-absent-topk-buffer.yaml --variant A --no-expect",
        "### Judged figures", "figure concurrency", "### Not observed", "sm_90a: no NVRTC",
        "figures of", "Repeat all:"}) {
    const std::size_t at = text.find(part, last);
    ASSERT_NE(at, std::string::npos) << part << "\n" << text;
    last = at;
  }
  // A screen: before the first fold.
  const std::string screen = text.substr(0, text.find("<details>"));
  EXPECT_LT(std::count(screen.begin(), screen.end(), '\n'), 60);
}

TEST(Markdown, ForeignTextStaysInCode) {
  for (const std::string& bad : tricks()) {
    const Sample s = sample_of(bad);
    const std::string text = markdown_report(s.report);
    const MarkdownRead read = MarkdownReader::read(text);
    EXPECT_THAT(read.problems, IsEmpty()) << bad;
    EXPECT_THAT(read.outside, Not(HasSubstr("ZQX"))) << bad;
    EXPECT_TRUE(std::any_of(read.code.begin(), read.code.end(), [](const std::string& code) {
      return code.find("ZQX") != std::string::npos;
    })) << bad;
    EXPECT_EQ(valid_utf8(text), text);
    for (const char c : text) {
      if (static_cast<unsigned char>(c) < 0x20) {
        EXPECT_EQ(c, '\n') << bad;
      }
    }
    EXPECT_THAT(text, Not(HasSubstr("\xe2\x80\xae")));
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) EXPECT_NE(line.compare(0, 2, "::"), 0) << line;
  }
}

TEST(Markdown, EveryFieldMayBeHostile) {
  const Sample s = hostile_report();
  const std::string text = markdown_report(s.report);
  const MarkdownRead read = MarkdownReader::read(text);
  EXPECT_THAT(read.problems, IsEmpty());
  EXPECT_THAT(text, Not(HasSubstr("hunter2")));
  // Of HTML only what this writer writes itself.
  std::string rest = read.outside;
  for (const std::string tag :
       {"<details>", "</details>", "<summary>", "</summary>", "<span>$</span>"}) {
    for (std::size_t at = 0; (at = rest.find(tag)) != std::string::npos;)
      rest.erase(at, tag.size());
  }
  EXPECT_THAT(rest, Not(HasSubstr("<")));
  EXPECT_THAT(rest, Not(HasSubstr("@")));
  EXPECT_THAT(rest, Not(HasSubstr("](")));
}

TEST(Markdown, ProseBecomesNoLinkMentionOrFormula) {
  const MarkdownText text({"hunter2-token"});
  EXPECT_EQ(text.prose("plain words, 100 % of them; (yes) a/b"),
            "plain words, 100 % of them; (yes) a/b");
  EXPECT_EQ(text.prose("@user"), "&#64;\xe2\x80\x8buser");
  EXPECT_EQ(text.prose("repo#12"),
            "repo&#35;\xe2\x80\x8b"
            "12");
  EXPECT_EQ(text.prose("https://x"), "https:\xe2\x80\x8b//x");
  EXPECT_EQ(text.prose("www.x.y"), "www\xe2\x80\x8b.x.y");
  EXPECT_EQ(text.prose("GH-12"),
            "GH-\xe2\x80\x8b"
            "12");
  EXPECT_EQ(text.prose("a $b$"), "a <span>$</span>b<span>$</span>");
  EXPECT_EQ(text.prose("[a](b) <i> `c` *d* e_f | &amp;"),
            "&#91;a&#93;(b) &#60;i&#62; &#96;c&#96; &#42;d&#42; e&#95;f &#124; &#38;amp;");
  EXPECT_EQ(text.prose("- item"), "&#45; item");
  EXPECT_EQ(text.prose("1. item"), "&#49;. item");
  EXPECT_EQ(text.prose("    code"), "code");
  EXPECT_EQ(text.prose("say hunter2-token"), "say &#91;secret&#93;");
}

TEST(Markdown, CodeHoldsWhatItIsGiven) {
  const MarkdownText text({"hunter2-token", "pass\"word\\1"});
  EXPECT_EQ(text.code("a"), "`a`");
  EXPECT_EQ(text.code(""), "–");
  EXPECT_EQ(text.code("   "), "–");
  EXPECT_EQ(text.code("a`b"), "``a`b``");
  EXPECT_EQ(text.code("`a``"), "``` `a`` ```");
  EXPECT_EQ(text.code(" a "), "`  a  `");
  EXPECT_EQ(text.code("a|b\\|c"), "`a\\|b\\\\|c`");
  EXPECT_EQ(text.code("a\nb"), "`a\\nb`");
  EXPECT_EQ(text.code("x hunter2-token"), "`x [secret]`");
  EXPECT_EQ(text.code("hun\x1b[1mter2-token"), "`[secret]`");  // colour must not hide it
  EXPECT_EQ(text.code(R"({"a":"pass\"word\\1"})"), R"(`{"a":"[secret]"}`)");
  EXPECT_EQ(text.html("<b a='\"'>&"), "<code>&#60;b a=&#39;&#34;&#39;&#62;&#38;</code>");
  const std::string million = text.code(std::string(1000000, 'x') + "hunter2-token");
  EXPECT_LT(million.size(), 800u);
  EXPECT_THAT(million, HasSubstr("1000013 bytes in all"));
  EXPECT_EQ(text.block("text", {"```", "::error::x"}), "````text\n```\n\\::error::x\n````\n");
}

TEST(Markdown, ASecretAtTheCutIsNotCutInHalf) {
  const MarkdownText text({"hunter2-token"});
  for (std::size_t at = 580; at < 620; ++at)
    EXPECT_THAT(text.code(std::string(at, 'x') + "hunter2-token"), Not(HasSubstr("hun"))) << at;
  // Masks are so much shorter than this secret that the place where bytes are cut is in sight.
  const std::string secret = "hunter2" + std::string(190, 'x');
  std::string many;
  for (int i = 0; i < 100; ++i) many += secret;
  for (std::size_t most = 590; most < 610; ++most)
    EXPECT_THAT(MarkdownText({secret}).code(many, most), Not(HasSubstr("hun"))) << most;
}

TEST(Markdown, CutsBetweenEntriesAndSaysHowMany) {
  const Sample s = sample_report();
  const std::string whole = markdown_report(s.report);
  EXPECT_THAT(whole, Not(HasSubstr("**Cut:**")));
  for (std::size_t limit = 0; limit < whole.size() + 600; limit += limit < 400 ? 7 : 61) {
    const std::string text = markdown_report(s.report, limit);
    ASSERT_LE(text.size(), limit);
    const MarkdownRead read = MarkdownReader::read(text);
    ASSERT_THAT(read.problems, IsEmpty()) << limit << "\n" << text;
    ASSERT_EQ(valid_utf8(text), text);
    if (text.empty() || text == whole) continue;
    const std::string last = text.substr(text.rfind('\n', text.size() - 2) + 1);
    ASSERT_EQ(last.rfind("**Cut:** ", 0), 0u) << text;
    ASSERT_NE(last.find(" did not fit into " + std::to_string(limit) + " bytes"),
              std::string::npos);
  }
  EXPECT_EQ(markdown_report(s.report, whole.size() + 600), whole);
}

TEST(Markdown, AMegabyteHoldsTheVerdictOfVeryManyVariants) {
  Sample s = sample_report();
  ScenarioReport& two = s.report.scenarios[1];
  const VariantReport fail = two.variants[0];
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  two.variants.clear();
  for (int i = 0; i < 1500; ++i) {
    two.variants.push_back(fail);
    two.variants.back().name = "v" + std::to_string(i) + std::string(random() % 200, '|');
  }
  const std::string text = markdown_report(s.report);
  EXPECT_LE(text.size(), kMarkdownLimit);
  EXPECT_GT(text.size(), kMarkdownLimit * 9 / 10);
  const MarkdownRead read = MarkdownReader::read(text);
  EXPECT_THAT(read.problems, IsEmpty());
  EXPECT_EQ(text.rfind("## ❌ FAIL", 0), 0u);
  EXPECT_THAT(text.substr(text.size() - 200), HasSubstr("**Cut:** "));
  // The first screen stays one: rows beyond it are folded.
  const std::string screen = text.substr(0, text.find("<details>"));
  EXPECT_LT(std::count(screen.begin(), screen.end(), '\n'), 40);
}

TEST(Markdown, ManyFiguresAsAskedAreFolded) {
  Sample s = sample_report();
  std::vector<verdict::Check>& checks = s.report.scenarios[0].variants[1].verdict.checks;
  for (int i = 0; i < 40; ++i)
    checks.push_back({"figure f" + std::to_string(i), "1", "1", verdict::Verdict::kPass, ""});
  const std::string text = markdown_report(s.report);
  EXPECT_LT(text.find("`figure concurrency`"), text.find("40 more judged figures"));
  EXPECT_GT(text.find("`figure f0`"), text.find("40 more judged figures"));
  EXPECT_THAT(text, HasSubstr("`figure f39`"));
}

TEST(Markdown, AnEmptyReportIsStillAReport) {
  Report empty;
  empty.verb = "gate";
  empty.interrupted = true;
  const std::string text = markdown_report(empty);
  EXPECT_THAT(text, HasSubstr("INCONCLUSIVE"));
  EXPECT_THAT(text, HasSubstr("interrupted"));
  EXPECT_THAT(MarkdownReader::read(text).problems, IsEmpty());
}

TEST(Markdown, SaysWhyScenariosRanOrDidNot) {
  Sample s = sample_report();
  ScenarioReport skipped;
  skipped.name = "untouched";
  skipped.verdict = verdict::Verdict::kSkip;
  skipped.reason = skipped.selection = "no changed file matches its touches";
  s.report.scenarios[0].selection = "touches 'vllm/**' matches vllm/a.py";
  s.report.scenarios.push_back(skipped);
  const std::string text = markdown_report(s.report);
  EXPECT_THAT(text, HasSubstr("| `untouched` | – | ⏭️ SKIP | not run | – | – |"));
  EXPECT_THAT(text, HasSubstr("| `untouched` | no | `no changed file matches its touches` |"));
  EXPECT_THAT(text, HasSubstr("1 scenario skipped"));
}

TEST(Markdown, TheReaderCanRefuse) {
  const auto problems = [](const char* text) { return MarkdownReader::read(text).problems; };
  EXPECT_THAT(problems("a `b` c\n"), IsEmpty());
  EXPECT_THAT(problems("a `b c\n"), Not(IsEmpty()));
  EXPECT_THAT(problems("```\nx\n"), Not(IsEmpty()));
  EXPECT_THAT(problems("| a | b |\n| - | - |\n| `x|y` | z |\n"), Not(IsEmpty()));
  EXPECT_THAT(problems("<details>\n"), Not(IsEmpty()));
  EXPECT_EQ(MarkdownReader::read("a `b` ``c`d`` e").outside, "a   e\n");
}

}  // namespace
}  // namespace warmgate::reports
