// `warmgate explain` as its users meet it: exit codes, streams, files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "harness/cli/process_for_test.h"
#include "harness/explain/reader.h"

namespace warmgate::cli {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

class ExplainCli : public testing::Test {
 protected:
  void SetUp() override {
    if (!explain::available()) GTEST_SKIP() << explain::availability();
    ASSERT_TRUE(fs::exists(program_path())) << program_path();
  }
  static std::string sample(const std::string& number) {
    for (const auto& file : fs::directory_iterator(source_path("fixtures/logs")))
      if (file.path().filename().string().rfind(number, 0) == 0 &&
          file.path().extension() == ".log")
        return file.path().string();
    ADD_FAILURE() << "no sample " << number;
    return "";
  }
  static nlohmann::json json_of(std::vector<std::string> words) {
    words.insert(words.begin(), "explain");
    words.insert(words.end(), {"--json", "-"});
    return nlohmann::json::parse(warmgate(words).out, nullptr, false);
  }
  TempDir dir_;
};

TEST_F(ExplainCli, TheFirstLineIsTheAnswerAndTheCodeAgrees) {
  const Ran good = warmgate({"explain", sample("01")});
  EXPECT_EQ(good.code, 0) << good.err;
  EXPECT_THAT(good.out, StartsWith("starts: "));
  const Ran mine = warmgate({"explain", sample("04")});
  EXPECT_EQ(mine.code, 1) << mine.err;
  EXPECT_THAT(mine.out, StartsWith("mine: crashed in warmup on rank=1"));
  EXPECT_THAT(mine.out, HasSubstr("_dummy_sampler_run"));
  const Ran hung = warmgate({"explain", sample("06")});
  EXPECT_EQ(hung.code, 1);
  EXPECT_THAT(hung.out, StartsWith("unclear: stands still in warmup"));
  const std::string part = slurp(sample("01")).substr(0, 2000);
  const Ran incomplete = warmgate({"explain", dir_.write("part.log", part).string()});
  EXPECT_EQ(incomplete.code, 3) << incomplete.out;
  EXPECT_THAT(incomplete.out, StartsWith("incomplete: "));
  EXPECT_EQ(
      warmgate({"explain", (dir_.path() / "part.log").string(), "--soft", "inconclusive"}).code, 0);
}

TEST_F(ExplainCli, InfrastructureIsFour) {
  const std::string log =
      "(APIServer pid=11) INFO 07-02 09:00:01 [api_server.py:1890] vLLM API server version 0.24.0\n"
      "(APIServer pid=11) Traceback (most recent call last):\n"
      "(APIServer pid=11)   File \"/opt/venv/lib/python3.12/site-packages/vllm/entrypoints/openai/"
      "api_server.py\", line 1700, in create_server_socket\n"
      "(APIServer pid=11)     sock.bind(addr)\n"
      "(APIServer pid=11) OSError: [Errno 98] Address already in use\n";
  const Ran ran = warmgate({"explain", dir_.write("busy.log", log).string()});
  EXPECT_EQ(ran.code, 4) << ran.out;
  EXPECT_THAT(ran.out, StartsWith("infrastructure: the port is taken by another process"));
}

TEST_F(ExplainCli, AKnownRegressionIsNamedWithItsFix) {
  const std::string entry = slurp(source_path("fixtures/known/vllm-50615.yaml"));
  const std::size_t begin = entry.find("log: |\n") + 7, end = entry.find("near_miss:");
  std::string log = entry.substr(begin, end - begin);
  for (std::size_t at = 0; (at = log.find("\n  ", at)) != std::string::npos;) log.erase(at + 1, 2);
  const std::string file = dir_.write("known.log", log).string();
  const Ran ran = warmgate({"explain", file});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.out, StartsWith("known: "));
  EXPECT_THAT(ran.out, HasSubstr("https://github.com/vllm-project/vllm/pull/50693"));
  const auto json = json_of({file});
  EXPECT_EQ(json["answer"]["kind"], "known");
  EXPECT_EQ(json["answer"]["known"][0]["name"], "vllm-50615");
  // An entry of one's own stands beside them, and a wrong one is said with its place.
  dir_.write("own/mine.yaml",
             "known: mine\nabout: Ours.\nengine: vllm\nfingerprint: {function: forward_mqa}\n"
             "see: https://example.org/1\nlog: x\nnear_miss: y\n");
  EXPECT_THAT(warmgate({"explain", file, "--known", (dir_.path() / "own").string()}).out,
              HasSubstr("https://example.org/1"));
  dir_.write("bad/bad.yaml", "known: bad\n");
  const Ran bad = warmgate({"explain", file, "--known", (dir_.path() / "bad").string()});
  EXPECT_EQ(bad.code, 2);
  EXPECT_THAT(bad.err, HasSubstr("bad.yaml:"));
  EXPECT_EQ(warmgate({"explain", file, "--known", (dir_.path() / "none").string()}).code, 2);
}

TEST_F(ExplainCli, TheJsonHasTheNamesOfTheSidecars) {
  const auto json = json_of({sample("04")});
  for (const char* name : {"schema", "engine", "version", "outcome", "last_phase", "failing_phase",
                           "failing_worker", "failing_rank", "fingerprint", "figures", "answer"})
    EXPECT_TRUE(json.contains(name)) << name;
  EXPECT_EQ(json["outcome"], "crashed");
  EXPECT_EQ(json["failing_rank"], 1);
  EXPECT_EQ(json["fingerprint"]["function"], "_dummy_sampler_run");
  const auto good = json_of({sample("01")});
  EXPECT_TRUE(good["failing_phase"].is_null());
  EXPECT_EQ(good["launch"]["model"], "example/dense-14b");
}

TEST_F(ExplainCli, StdinAndArchivesSayTheSame) {
  const std::string log = sample("04");
  const auto plain = json_of({log});
  const std::string program = program_path().string();
  const Ran piped = shell("gzip -c '" + log + "' | '" + program + "' explain - --json -");
  EXPECT_EQ(piped.code, 1) << piped.err;
  const auto json = nlohmann::json::parse(piped.out);
  EXPECT_EQ(json["fingerprint"], plain["fingerprint"]);
  EXPECT_EQ(json["figures"], plain["figures"]);
  EXPECT_EQ(shell("'" + program + "' explain - < '" + log + "'").code, 1);
}

TEST_F(ExplainCli, ATruncatedArchiveIsReadAndSaid) {
  shell("gzip -c '" + sample("01") + "' | head -c 1000 > t.log.gz", dir_.path());
  const Ran ran = warmgate({"explain", (dir_.path() / "t.log.gz").string()});
  EXPECT_THAT(ran.code, AnyOf(2, 3));
  EXPECT_THAT(ran.out + ran.err, HasSubstr("cut off"));
}

TEST_F(ExplainCli, SeveralFilesAreOneStart) {
  std::string ranks[2], rest;
  std::istringstream log(slurp(sample("04")));
  for (std::string line; std::getline(log, line);) {
    std::string& to = line.find("rank=0 ") != std::string::npos   ? ranks[0]
                      : line.find("rank=1 ") != std::string::npos ? ranks[1]
                                                                  : rest;
    to += line + "\n";
  }
  const std::string a = dir_.write("rank0.log", ranks[0]).string();
  const std::string b = dir_.write("rank1.log", ranks[1]).string();
  const std::string c = dir_.write("core.log", rest).string();
  // Whatever the order in which they are named, the rank that failed first did.
  for (const auto& order : {std::vector{a, b, c}, std::vector{c, b, a}}) {
    const auto json = json_of(order);
    EXPECT_EQ(json["outcome"], "crashed");
    EXPECT_EQ(json["failing_rank"], 1);
    EXPECT_EQ(json["failing_phase"], "warmup");
    EXPECT_EQ(json["fingerprint"]["function"], "_dummy_sampler_run");
  }
  EXPECT_THAT(warmgate({"explain", a, b, c}).out, HasSubstr("rank1.log:"));
}

TEST_F(ExplainCli, LogsOfSeveralEnginesAreNoOneStart) {
  for (const auto& words : {std::vector{sample("01"), sample("07")},
                            {sample("09"), sample("12")},
                            {sample("01"), sample("03"), sample("11")}}) {
    std::vector<std::string> all = {"explain"};
    all.insert(all.end(), words.begin(), words.end());
    const Ran ran = warmgate(all);
    EXPECT_EQ(ran.code, 2) << ran.out;
    for (const std::string& name : words) EXPECT_THAT(ran.err, HasSubstr(name));
    EXPECT_THAT(ran.err, HasSubstr("--against"));
    EXPECT_THAT(ran.out, IsEmpty());
  }
  const Ran ran = warmgate({"explain", sample("01"), sample("07")});
  EXPECT_THAT(ran.err, HasSubstr(sample("01") + " of vllm, " + sample("07") + " of sglang"));
  // What is proposed works, and so does saying whose they are.
  const Ran held = warmgate({"explain", sample("07"), "--against", sample("01")});
  EXPECT_EQ(held.code, 0) << held.err;
  EXPECT_THAT(held.out, HasSubstr("A is of vllm, B of sglang"));
  EXPECT_NE(warmgate({"explain", sample("01"), sample("07"), "--engine", "vllm"}).code, 2);
  // A file that says too little to be of any engine is of the start that the others are of.
  const std::string few = dir_.write("few.log", "hello\nworld\n").string();
  EXPECT_EQ(warmgate({"explain", sample("01"), few}).code, 0);
}

TEST_F(ExplainCli, LinesThatHaveNoPlaceAreTheSameEverywhere) {
  const std::string log = dir_.write("a.log", slurp(sample("04")) + "nobody knows this\n").string();
  const auto lines = json_of({log})["lines"];
  EXPECT_EQ(lines["unplaced"], 1);
  EXPECT_THAT(
      warmgate({"explain", log}).out,
      HasSubstr("1 of " + std::to_string(lines["all"].get<int>()) + " lines have no place"));
}

TEST_F(ExplainCli, WhereTheLogJustEndsItSaysWhatWouldTellMore) {
  const std::string part = dir_.write("part.log", slurp(sample("01")).substr(0, 2000)).string();
  EXPECT_THAT(warmgate({"explain", part}).out, HasSubstr("--ended N"));
  EXPECT_TRUE(json_of({part})["answer"]["hint"].is_string());
  EXPECT_THAT(warmgate({"explain", sample("06")}).out, HasSubstr("--ended N"));
  for (const auto& words :
       {std::vector<std::string>{part, "--ended", "1"}, {sample("04")}, {part, "-q"}}) {
    std::vector<std::string> all = {"explain"};
    all.insert(all.end(), words.begin(), words.end());
    EXPECT_THAT(warmgate(all).out, Not(HasSubstr("--ended N"))) << testing::PrintToString(words);
  }
  EXPECT_TRUE(json_of({sample("01")})["answer"]["hint"].is_null());
}

TEST_F(ExplainCli, TwoLogs) {
  const std::string whole = slurp(sample("01"));
  const std::string tail =
      dir_.write("tail.log", whole.substr(whole.find("\n", whole.size() / 2) + 1)).string();
  const std::string begin = dir_.write("begin.log", whole.substr(0, 2000)).string();
  EXPECT_THAT(warmgate({"explain", tail, "--against", sample("01")}).out,
              AllOf(HasSubstr("not in the log"), HasSubstr("B's log begins in"),
                    Not(HasSubstr("not reached"))));
  EXPECT_THAT(warmgate({"explain", begin, "--against", sample("01")}).out,
              AllOf(HasSubstr("not reached"), Not(HasSubstr("not in the log"))));
  const Ran ran = warmgate({"explain", sample("04"), "--against", sample("01")});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.out, HasSubstr("against the other log"));
  EXPECT_THAT(ran.out, HasSubstr("kv_tokens"));
  const auto json = json_of({sample("01"), "--against", sample("01")});
  EXPECT_TRUE(json["comparison"]["divergence"].is_null());
  EXPECT_TRUE(json["comparison"]["figures"].empty());
}

TEST_F(ExplainCli, TheSkeletonIsAScenario) {
  const std::string file = (dir_.path() / "repro.yaml").string();
  const Ran ran = warmgate({"explain", sample("03"), "--scenario", file});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.out, HasSubstr("warmgate run " + file));
  const Ran resolved = warmgate({"resolve", file});
  EXPECT_EQ(resolved.code, 0) << resolved.err << slurp(file);
  const Ran alone = warmgate({"explain", sample("03"), "--scenario", "-"});
  EXPECT_EQ(alone.out, slurp(file));
  EXPECT_THAT(alone.out, HasSubstr("expect: {outcome: crashed, phase: kv}"));
}

TEST_F(ExplainCli, WhatIsNoLogIsTwo) {
  const auto refused = [&](const std::string& name, const std::string& says) {
    const Ran ran = warmgate({"explain", name});
    EXPECT_EQ(ran.code, 2) << name;
    EXPECT_THAT(ran.err, HasSubstr(says)) << name;
    EXPECT_THAT(ran.out, IsEmpty()) << name;
  };
  refused((dir_.path() / "missing.log").string(), "No such file");
  refused(dir_.path().string(), "a folder");
  refused("/dev/zero", "a device");
  refused(dir_.write("empty.log", "").string(), "empty");
  const std::string pipe = (dir_.path() / "pipe").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  refused(pipe, "named pipe");
  const Ran engine = warmgate({"explain", sample("01"), "--engine", "vlm"});
  EXPECT_EQ(engine.code, 2);
  EXPECT_THAT(engine.err, HasSubstr("no log grammar 'vlm'; there are"));
  EXPECT_EQ(warmgate({"explain", sample("01"), "--engine", "vllm"}).code, 0);
}

TEST_F(ExplainCli, WhatIsNoLogOfAnEngineIsNotJudged) {
  std::string noise;
  for (int i = 0; i < 5000; ++i) noise += static_cast<char>(i * 7919 >> 3);
  const Ran ran = warmgate({"explain", dir_.write("noise.log", noise).string()});
  EXPECT_EQ(ran.code, 2) << ran.out;
  EXPECT_THAT(ran.err, HasSubstr("no log of an engine that warmgate reads"));
  EXPECT_THAT(ran.out, IsEmpty());
  // Whatever is no log: a page, blanks, lines without a word; also as the one of two that is held
  // against, and where the engine is named.
  const std::string good = sample("01");
  const std::string page = source_path("README.md").string();
  const std::string blank = dir_.write("blank.log", "\n  \n\r\n\t\n").string();
  for (const auto& words : {std::vector<std::string>{page},
                            {blank},
                            {good, "--against", page},
                            {page, "--against", good},
                            {page, "--engine", "vllm"},
                            {page, blank}}) {
    std::vector<std::string> all = {"explain"};
    all.insert(all.end(), words.begin(), words.end());
    const Ran no = warmgate(all);
    EXPECT_EQ(no.code, 2) << testing::PrintToString(words) << no.out.substr(0, 200);
    EXPECT_THAT(no.err, AnyOf(HasSubstr("no log of"), HasSubstr("blank: there is no log in it")));
  }
  // How it ended says something where the log does not.
  EXPECT_THAT(warmgate({"explain", dir_.write("x.log", "hello\n").string(), "--ended", "137"}).out,
              HasSubstr("SIGKILL"));
  EXPECT_EQ(warmgate({"explain", blank, "--ended", "137"}).code, 2);
}

TEST_F(ExplainCli, SecretsOfALogAreMaskedEverywhere) {
  std::string log = slurp(sample("03"));
  log +=
      "(APIServer pid=11) INFO x non-default args: {'model': 'm', 'api_key': 'sup3rs3cret', "
      "'tensor_parallel_size': 2}\n"
      "+ vllm serve m --api-key sup3rs3cret --seed 7\n"
      "(APIServer pid=11) ERROR 01-30 16:20:14 [x.py:1] GET https://user:p4ssw0rd!@host/m?X-Amz-"
      "Signature=0badcafe0badcafe failed\n"
      "RuntimeError: Authorization: Bearer tok3n-tok3n-tok3n\n";
  const std::string file = dir_.write("s.log", log).string();
  const std::string out_file = (dir_.path() / "out.json").string();
  const std::string scenario = (dir_.path() / "out.yaml").string();
  const Ran ran = warmgate({"explain", file, "-v", "--json", out_file, "--scenario", scenario});
  for (const std::string& text : {ran.out, ran.err, slurp(out_file), slurp(scenario)}) {
    for (const char* secret : {"sup3rs3cret", "p4ssw0rd!", "0badcafe0badcafe", "tok3n-tok3n-tok3n"})
      EXPECT_THAT(text, Not(HasSubstr(secret)));
  }
}

TEST_F(ExplainCli, ASecretIsMaskedBeforeItIsCutOrItsDigitsAreReplaced) {
  const std::string head =
      "INFO 11-30 15:00:00 [api_server.py:100] vLLM API server version 0.11.0\n"
      "(EngineCore_DP0 pid=1) ERROR 11-30 15:00:02 [core.py:700] EngineCore failed to start.\n"
      "Traceback (most recent call last):\n"
      "  File \"/x/vllm/v1/worker.py\", line 10, in load\n    x = y\n";
  for (const std::string password :
       {"hunter2pw", "S3cretProxyPassw0rdLong1234567", "correcthorse"}) {
    const std::string log =
        dir_.write("x.log", head + "OSError: cannot reach https://bob:" + password +
                                "@proxy.corp:8080/simple\n")
            .string();
    const std::string json = (dir_.path() / "x.json").string();
    const std::string yaml = (dir_.path() / "x.yaml").string();
    const Ran ran = warmgate({"explain", log, "-v", "--json", json, "--scenario", yaml});
    // Any four letters of it that stand together are too many.
    for (const std::string& text : {ran.out, ran.err, slurp(json), slurp(yaml)}) {
      EXPECT_THAT(text, Not(HasSubstr(password.substr(0, 5)))) << password;
      EXPECT_THAT(text, Not(HasSubstr(password.substr(password.size() - 5)))) << password;
      EXPECT_THAT(text, Not(HasSubstr("hunter<r>"))) << password;
      EXPECT_THAT(text, Not(HasSubstr("cretProxy"))) << password;
    }
  }
  for (int filler = 100; filler < 700; filler += 7) {
    const std::string log =
        dir_.write("y.log", head + "OSError: no\nzzz " +
                                std::string(static_cast<std::size_t>(filler), 'p') +
                                " https://u:abcdefghijklmnopqrstuvwxyzabcdefgh@host tail\n")
            .string();
    EXPECT_THAT(warmgate({"explain", log, "-v"}).out, Not(HasSubstr("u:abcdef"))) << filler;
  }
}

TEST_F(ExplainCli, ItsLogsAreNotWrittenOver) {
  const std::string log = dir_.write("x.log", slurp(sample("04"))).string();
  const std::string before = slurp(log);
  for (const char* option : {"--json", "--scenario"}) {
    const Ran ran = warmgate({"explain", log, option, log});
    EXPECT_EQ(ran.code, 2) << option;
    EXPECT_THAT(ran.err, HasSubstr("is one of the logs")) << option;
    EXPECT_EQ(slurp(log), before);
  }
}

// Its lines look like nothing each for itself, and none of them has a place.
TEST_F(ExplainCli, ThePrivateKeyInALogIsNoUnplacedText) {
  for (const std::string prefix : {"", "INFO 07-01 10:00:00 [x.py:1] "}) {
    std::string log = slurp(sample("04"));
    for (const char* line :
         {"-----BEGIN RSA PRIVATE KEY-----", "MIIEZq7RtPwAAAABBBBB",
          "Zq7cd/ef+gh==", "-----END RSA PRIVATE KEY-----", "a line after the key"})
      log += prefix + line + "\n";
    const std::string file = dir_.write("key.log", log).string();
    const Ran ran = warmgate({"explain", file, "--json", "-", "-v"});
    EXPECT_THAT(ran.out, Not(HasSubstr("Zq7"))) << prefix;
    EXPECT_THAT(ran.out, HasSubstr("a line after the key")) << prefix;
    EXPECT_THAT(warmgate({"explain", file, "-v"}).out, Not(HasSubstr("Zq7"))) << prefix;
  }
}

// A secret whose shape spans words is masked word by word: what is written is a scenario still.
TEST_F(ExplainCli, ASecretInTheLaunchLineLeavesTheSkeletonLegal) {
  const std::string file =
      dir_.write("launch.log",
                 "vllm serve m --header Authorization: Bearer Zq7RtPwXy98uvB --max-model-len 10\n" +
                     slurp(sample("04")))
          .string();
  const std::string yaml = (dir_.path() / "launch.yaml").string();
  warmgate({"explain", file, "--scenario", yaml});
  EXPECT_THAT(slurp(yaml), Not(HasSubstr("Zq7")));
  EXPECT_THAT(slurp(yaml), HasSubstr("- \"--max-model-len\""));
  EXPECT_EQ(warmgate({"resolve", yaml}).code, 0);
}

TEST_F(ExplainCli, MoreProblemsThanAreKept) {
  for (int i = 0; i < 130; ++i)
    dir_.write("known/k" + std::to_string(i) + ".yaml", "known: x" + std::to_string(i) + "\n");
  const Ran ran = warmgate({"explain", sample("04"), "--known", (dir_.path() / "known").string()});
  EXPECT_EQ(ran.code, 2) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("100 problems"));
}

TEST_F(ExplainCli, NothingInALogReachesTheTerminalRaw) {
  std::string log = slurp(sample("04"));
  log += "RuntimeError: \x1b]0;owned\x07\x1b[2J \xe2\x80\xae ::error::x\n::warning::y\n";
  // What tells how to start it again is foreign text too.
  log += "+ vllm serve m\xe2\x80\xae --served-model-name \xe2\x81\xa7x\xf3\xa0\x81\x81\n";
  const std::string file = dir_.write("c.log", log).string();
  const std::string json = (dir_.path() / "c.json").string();
  const std::string yaml = (dir_.path() / "c.yaml").string();
  const Ran ran = warmgate({"explain", file, "-v", "--json", json, "--scenario", yaml});
  for (const std::string& text : {ran.out, ran.err, slurp(json), slurp(yaml)}) {
    for (const char* raw : {"\x1b", "\x07", "\xe2\x80\xae", "\xe2\x81\xa7"})
      EXPECT_THAT(text, Not(HasSubstr(raw)));
  }
  EXPECT_EQ(nlohmann::json::parse(slurp(json))["launch"]["model"], "m\xe2\x80\xae");
  EXPECT_THAT(slurp(yaml), HasSubstr("x\\U000e0041"));
  EXPECT_EQ(warmgate({"resolve", yaml}).code, 0);
  EXPECT_THAT(ran.out, Not(HasSubstr("\x1b")));
  EXPECT_THAT(ran.out, Not(HasSubstr("\x07")));
  EXPECT_THAT(ran.out, Not(HasSubstr("\n::")));
  EXPECT_THAT(ran.out, Not(HasSubstr("\xe2\x80\xae")));
}

}  // namespace
}  // namespace warmgate::cli
