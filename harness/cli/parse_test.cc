#include "harness/cli/parse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/cli/nearest.h"
#include "harness/cli/values.h"

namespace warmgate::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Parsed parsed(std::vector<const char*> words) {
  words.insert(words.begin(), "warmgate");
  return parse(static_cast<int>(words.size()), words.data());
}

const std::vector<std::string> kCommands = {"run",     "ab",     "gate",   "step",
                                            "resolve", "plan",   "keys",   "accept",
                                            "schema",  "doctor", "shrink", "explain"};

TEST(Parse, EveryCommandHasHelpWithAnExample) {
  for (const std::string& command : kCommands) {
    const Parsed help = parsed({command.c_str(), "--help"});
    EXPECT_FALSE(help.line.has_value());
    EXPECT_EQ(help.exit_code, 0) << command;
    EXPECT_THAT(help.out, HasSubstr("xample")) << command;
    EXPECT_THAT(help.out, HasSubstr("warmgate " + command));
    EXPECT_THAT(help.err, IsEmpty());
  }
  const Parsed all = parsed({"--help"});
  for (const std::string& command : kCommands) EXPECT_THAT(all.out, HasSubstr("\n  " + command));
  EXPECT_THAT(all.out, HasSubstr("130 interrupted"));
  EXPECT_EQ(parsed({"--version"}).out, "warmgate " WARMGATE_VERSION "\n");
}

TEST(Parse, WhatIsWrongIsTwoAndSaysWhatWasMeant) {
  const auto wrong = [](std::vector<const char*> words, const char* says) {
    const Parsed p = parsed(words);
    EXPECT_FALSE(p.line.has_value()) << says;
    EXPECT_EQ(p.exit_code, 2) << says;
    EXPECT_THAT(p.err, HasSubstr(says));
    EXPECT_THAT(p.out, IsEmpty());
  };
  wrong({}, "Usage");
  wrong({"gaet", "x"}, "did you mean 'gate'?");
  wrong({"frobnicate"}, "unknown command or option 'frobnicate'");
  wrong({"run"}, "scenario");
  wrong({"run", "a.yaml", "b.yaml"}, "b.yaml");
  wrong({"run", "a.yaml", "--variants", "A"}, "did you mean '--variant'?");
  wrong({"run", "a.yaml", "--repeat", "0"}, "--repeat");
  wrong({"run", "a.yaml", "--repeat", "many"}, "--repeat");
  wrong({"run", "a.yaml", "--jobs", "-1"}, "--jobs");
  wrong({"run", "a.yaml", "--timeout", "soon"}, "5min");
  wrong({"run", "a.yaml", "--today", "2026-13-01"}, "date");
  wrong({"run", "a.yaml", "--today", "yesterday"}, "YYYY-MM-DD");
  wrong({"run", "a.yaml", "--soft", "everything"}, "--soft");
  wrong({"run", "a.yaml", "--color", "mauve"}, "--color");
  wrong({"run", "a.yaml", "--jit", "llvm"}, "--jit");
  wrong({"run", "a.yaml", "-q", "-v"}, "exclude");
  wrong({"run", "a.yaml", "--no-cache", "--cache-dir", "x"}, "exclude");
  wrong({"run", "a.yaml", "--metrics", "/nowhere/m.yaml"}, "--metrics");
  wrong({"ab", "a.yaml", "A"}, "two variants");
  wrong({"gate"}, "paths");
  wrong({"accept"}, "accept takes");
  wrong({"accept", "a.yaml", "--report", "b.json"}, "accept takes");
  wrong({"schema", "extra"}, "extra");
}

TEST(Parse, ForBisectWrongUsageMustNotLookLikeABadCommit) {
  for (const std::vector<const char*>& words : {std::vector<const char*>{"step"},
                                                {"step", "a.yaml", "--frob"},
                                                {"step", "a", "--repeat", "x"}}) {
    const Parsed p = parsed(words);
    EXPECT_FALSE(p.line.has_value());
    EXPECT_EQ(p.exit_code, 128);
  }
}

TEST(Parse, RunTakesEverything) {
  const Parsed p = parsed({"run",           "a.yaml",    "--variant",
                           "A,B",           "--variant", "C[tp=2]",
                           "--no-expect",   "-j",        "3",
                           "--repeat",      "20",        "--timeout",
                           "1.5min",        "--soft",    "inconclusive,SKIP",
                           "--allow-skip",  "--json",    "-",
                           "--junit",       "j.xml",     "--rows",
                           "r.jsonl",       "--today",   "2026-01-31",
                           "--device",      "meta",      "--set",
                           "parallel.tp=4", "--set",     "limits.max_model_len=1",
                           "--cache-dir",   "d",         "--jit",
                           "host",          "-v",        "--color",
                           "never"});
  ASSERT_TRUE(p.line.has_value()) << p.err;
  const CommandLine& l = *p.line;
  EXPECT_EQ(l.command, "run");
  EXPECT_THAT(l.paths, ElementsAre("a.yaml"));
  EXPECT_THAT(l.run.variants, ElementsAre("A", "B", "C[tp=2]"));
  EXPECT_FALSE(l.run.expect);
  EXPECT_EQ(l.run.jobs, 3);
  EXPECT_EQ(l.run.repeat, 20);
  EXPECT_DOUBLE_EQ(l.run.timeout_s.value(), 90);
  EXPECT_THAT(l.soft, ElementsAre(verdict::Verdict::kInconclusive, verdict::Verdict::kSkip));
  EXPECT_TRUE(l.allow_skip);
  EXPECT_EQ(l.json, "-");
  EXPECT_EQ(l.junit, "j.xml");
  EXPECT_EQ(l.run.rows, "r.jsonl");
  EXPECT_EQ(l.run.today, "2026-01-31");
  EXPECT_EQ(l.run.load.device, "meta");
  EXPECT_THAT(l.run.load.overlays, ElementsAre("parallel.tp=4", "limits.max_model_len=1"));
  EXPECT_EQ(l.run.cache_dir, "d");
  EXPECT_EQ(l.run.jit, jit::Backend::kHost);
  EXPECT_EQ(l.detail, reports::Detail::kVerbose);
  EXPECT_EQ(l.colour, ColourChoice::kNever);
}

TEST(Parse, OptionsDoNotSwallowPaths) {
  const Parsed p = parsed(
      {"gate", "--tags", "quick,slow", "a.yaml", "--variant", "A", "b.yaml", "--set", "x=1", "c"});
  ASSERT_TRUE(p.line.has_value()) << p.err;
  EXPECT_THAT(p.line->paths, ElementsAre("a.yaml", "b.yaml", "c"));
  EXPECT_THAT(p.line->tags, ElementsAre("quick", "slow"));
  const Parsed ab = parsed({"ab", "a.yaml", "B", "C", "--repeat", "2"});
  ASSERT_TRUE(ab.line.has_value()) << ab.err;
  EXPECT_THAT(ab.line->sides, ElementsAre("B", "C"));
}

TEST(Parse, GithubIsOnOffOrAsTheMachineSays) {
  const auto github = [](std::vector<const char*> words) {
    words.insert(words.begin(), {"run", "a.yaml"});
    const Parsed p = parsed(words);
    EXPECT_TRUE(p.line.has_value()) << p.err;
    return p.line->github;
  };
  EXPECT_EQ(github({}), std::nullopt);
  EXPECT_EQ(github({"--github"}), std::optional(true));
  EXPECT_EQ(github({"--no-github"}), std::optional(false));
}

TEST(Parse, ChangedTakesOneWordEach) {
  const Parsed p = parsed({"gate", "--changed", "-", "a", "--changed", "x\ny", "b"});
  ASSERT_TRUE(p.line.has_value()) << p.err;
  EXPECT_THAT(p.line->changed, ElementsAre("-", "x\ny"));
  EXPECT_THAT(p.line->paths, ElementsAre("a", "b"));
  EXPECT_FALSE(parsed({"gate", "a", "--changed"}).line.has_value());
  EXPECT_FALSE(parsed({"run", "a.yaml", "--changed", "x"}).line.has_value());
}

TEST(Parse, AnEmptyWordIsNoScenario) {
  for (const char* command : {"run", "ab", "step", "resolve", "plan", "keys"}) {
    const Parsed p = parsed({command, ""});
    EXPECT_FALSE(p.line.has_value()) << command;
    EXPECT_THAT(p.err, HasSubstr("empty word")) << command;
  }
}

TEST(Parse, Seconds) {
  EXPECT_DOUBLE_EQ(parse_seconds("90").value(), 90);
  EXPECT_DOUBLE_EQ(parse_seconds("90 s").value(), 90);
  EXPECT_DOUBLE_EQ(parse_seconds("1.5min").value(), 90);
  EXPECT_DOUBLE_EQ(parse_seconds("2h").value(), 7200);
  EXPECT_DOUBLE_EQ(parse_seconds("500ms").value(), 0.5);
  for (const char* bad :
       {"",       "s",      "0",    "-1",   "inf",   "nan", "1e3",   "0x10",
        "5 days", "1 2",    "+5",   " 5",   "5.5.5", ".",   "1e300", "99999999999999999999h",
        "2778h",  "0.0001", "5\ts", "5 s s"})
    EXPECT_FALSE(parse_seconds(bad).has_value()) << bad;
}

// Every option that takes a value, with the words that scripts and slips put there.
TEST(Parse, AnEmptyWordIsNoValueOfAnyOption) {
  const std::vector<std::pair<const char*, std::vector<const char*>>> options = {
      {"run",
       {"--timeout", "--jobs", "-j", "--repeat", "--device", "--set", "--variant", "--cache-dir",
        "--jit", "--engine", "--today", "--rows", "--metrics", "--contracts", "--soft", "--json",
        "--junit", "--color"}},
      {"gate", {"--tags", "--variant", "--json"}},
      {"step", {"--fingerprint", "--like", "--build"}},
      {"plan", {"--json", "--set", "--device"}},
      {"accept", {"-o"}}};
  for (const auto& [command, names] : options) {
    for (const char* name : names) {
      const Parsed p = parsed({command, "a.yaml", name, ""});
      EXPECT_FALSE(p.line.has_value()) << command << " " << name << " ''";
      EXPECT_EQ(p.exit_code, std::string(command) == "step" ? 128 : 2);
      EXPECT_FALSE(p.err.empty());
    }
  }
  EXPECT_THAT(parsed({"run", "a.yaml", "--timeout", ""}).err,
              HasSubstr("--timeout: an empty word"));
  EXPECT_FALSE(parsed({"accept", "--report", ""}).line.has_value());
  EXPECT_FALSE(parsed({"gate", ""}).line.has_value());
  EXPECT_FALSE(parsed({"ab", "a.yaml", "A", ""}).line.has_value());
}

TEST(Parse, NumbersAreDecimalWholeAndInRange) {
  for (const char* option : {"--jobs", "--repeat"}) {
    for (const char* bad :
         {"", " ", "-1", "+1", "1.0", "1e3", "0x10", "010", "00", "-0", "nan", "inf", "3x", "3 ",
          " 3", "1,2", "100001", "2147483648", "99999999999999999999999"}) {
      const Parsed p = parsed({"run", "a.yaml", option, bad});
      EXPECT_FALSE(p.line.has_value()) << option << " '" << bad << "'";
      EXPECT_THAT(p.err, HasSubstr(option));
    }
    EXPECT_FALSE(parsed({"run", "a.yaml", option, "1", option, "2"}).line.has_value()) << option;
  }
  EXPECT_EQ(parsed({"run", "a.yaml", "--jobs", "0"}).line.value().run.jobs, 0);
  EXPECT_EQ(parsed({"run", "a.yaml", "--repeat", "100000"}).line.value().run.repeat, 100000);
}

TEST(Parse, TimesThatAreNone) {
  for (const char* bad : {"", "0", "-5", "nan", "inf", "1e9", "5x", "5 5", "9999999h", "soon"}) {
    const Parsed p = parsed({"run", "a.yaml", "--timeout", bad});
    EXPECT_FALSE(p.line.has_value()) << bad;
    EXPECT_THAT(p.err, HasSubstr("--timeout")) << bad;
  }
  EXPECT_FALSE(parsed({"run", "a.yaml", "--timeout", "5", "--timeout", "6"}).line.has_value());
}

TEST(Parse, DaysExist) {
  for (const char* bad : {"2026-02-30", "2026-00-10", "2026-1-1", "20260101", "2026-01-01 "})
    EXPECT_FALSE(parsed({"run", "a.yaml", "--today", bad}).line.has_value()) << bad;
  EXPECT_TRUE(parsed({"run", "a.yaml", "--today", "2028-02-29"}).line.has_value());
}

TEST(Parse, ListsOfNames) {
  for (const char* option : {"--variant", "--soft"}) {
    for (const char* bad : {",", "skip,", ",skip", "skip,,fail"}) {
      const Parsed p = parsed({"run", "a.yaml", option, bad});
      EXPECT_FALSE(p.line.has_value()) << option << " " << bad;
      EXPECT_THAT(p.err, HasSubstr("an empty name")) << bad;
    }
  }
  EXPECT_THAT(parsed({"run", "a.yaml", "--soft", "skip,passed"}).err,
              HasSubstr("'passed' is none"));
  // A variant of a matrix with two dimensions has a comma in its name.
  const Parsed p = parsed({"run", "a.yaml", "--variant", "A[x=1,y=2],B"});
  ASSERT_TRUE(p.line.has_value()) << p.err;
  EXPECT_THAT(p.line->run.variants, ElementsAre("A[x=1,y=2]", "B"));
}

TEST(Nearest, FindsTyposAndNothingElse) {
  EXPECT_EQ(nearest("gaet", kCommands), "gate");
  EXPECT_EQ(nearest("resolv", kCommands), "resolve");
  EXPECT_EQ(nearest("rnu", kCommands), "run");
  EXPECT_EQ(nearest("frobnicate", kCommands), "");
  EXPECT_EQ(nearest("x", {}), "");
  EXPECT_EQ(nearest(std::string(100000, 'a'), kCommands), "");
}

TEST(Parse, Explain) {
  const Parsed p = parsed({"explain", "a.log", "b.log.gz", "--against", "c.log", "--ended", "137",
                           "--known", "own", "--scenario", "-", "--soft", "inconclusive", "-q"});
  ASSERT_TRUE(p.line) << p.err;
  EXPECT_THAT(p.line->paths, ElementsAre("a.log", "b.log.gz"));
  EXPECT_THAT(p.line->against, ElementsAre("c.log"));
  EXPECT_THAT(p.line->known, ElementsAre("own"));
  EXPECT_EQ(p.line->ended, 137);
  EXPECT_EQ(p.line->skeleton, "-");
  EXPECT_EQ(p.line->soft.count(verdict::Verdict::kInconclusive), 1u);
  EXPECT_EQ(p.line->detail, reports::Detail::kQuiet);
  EXPECT_TRUE(parsed({"explain", "-"}).line);
  for (const std::vector<const char*>& words : {std::vector<const char*>{"explain"},
                                                {"explain", ""},
                                                {"explain", "a", "--ended", "256"},
                                                {"explain", "a", "--ended", "x"},
                                                {"explain", "a", "-q", "-v"},
                                                {"explain", "a", "--jsno"}})
    EXPECT_EQ(parsed(words).exit_code, 2);
}

}  // namespace
}  // namespace warmgate::cli
