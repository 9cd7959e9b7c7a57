#include "harness/explain/known.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/scenario/test_files.h"

namespace warmgate::explain {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class KnownTest : public scenario::TestFiles {
 protected:
  static constexpr const char* kGood =
      "known: good\n"
      "about: It falls.\n"
      "engine: vllm\n"
      "versions: '>=0.10.2 <0.11'\n"
      "fingerprint: {type: AssertionError, function: forward_mqa, file: flashmla.py, phase: "
      "profile}\n"
      "issue: vllm-project/vllm#50615\n"
      "log: x\n"
      "near_miss: y\n";

  // Reads a folder with one file; what was wrong with it, "" if nothing.
  std::string problems_with(const std::string& text, const std::string& name = "good.yaml") {
    std::filesystem::remove_all(folder_ / "k");
    write("k/" + name, text);
    set_ = KnownSet();
    scenario::Problems problems;
    set_.read_folder(folder_ / "k", false, problems);
    try {
      problems.throw_if_any();
      return "";
    } catch (const scenario::ScenarioError& error) {
      return error.what();
    }
  }
  std::string replaced(const std::string& what, const std::string& by) {
    std::string text = kGood;
    const std::size_t at = text.find(what);
    EXPECT_NE(at, std::string::npos) << what;
    return text.replace(at, what.size(), by);
  }
  static Symptom symptom() {
    Symptom out;
    out.engine = "vllm";
    out.version = "0.10.2";
    out.outcome = "crashed";
    out.phase = "profile";
    out.type = "AssertionError";
    out.function = "forward_mqa";
    out.file = "flashmla.py";
    out.said = {"AssertionError: the buffer is missing"};
    return out;
  }
  KnownSet set_;
};

TEST_F(KnownTest, AllPartsHaveToFit) {
  ASSERT_EQ(problems_with(kGood), "");
  ASSERT_EQ(set_.match(symptom()).size(), 1u);
  EXPECT_TRUE(set_.match(symptom())[0].version_seen);
  const auto changed = [&](auto change) {
    Symptom other = symptom();
    change(other);
    return set_.match(other).size();
  };
  EXPECT_EQ(changed([](Symptom& s) { s.engine = "sglang"; }), 0u);
  EXPECT_EQ(changed([](Symptom& s) { s.version = "0.11.0"; }), 0u);
  EXPECT_EQ(changed([](Symptom& s) { s.phase = "warmup"; }), 0u);
  EXPECT_EQ(changed([](Symptom& s) { s.type = "ValueError"; }), 0u);
  EXPECT_EQ(changed([](Symptom& s) { s.function = "forward_mha"; }), 0u);
  EXPECT_EQ(changed([](Symptom& s) { s.file = "flashmla_sparse.py"; }), 0u);
  EXPECT_EQ(changed([](Symptom& s) { s.outcome = "passed"; }), 0u);
  // A type may carry the start of its message.
  EXPECT_EQ(changed([](Symptom& s) { s.type = "AssertionError: the buffer"; }), 1u);
}

TEST_F(KnownTest, AVersionThatIsNotPrintedLeavesADoubt) {
  ASSERT_EQ(problems_with(kGood), "");
  Symptom unknown = symptom();
  unknown.version.reset();
  ASSERT_EQ(set_.match(unknown).size(), 1u);
  EXPECT_FALSE(set_.match(unknown)[0].version_seen);
  unknown.version = "nightly";
  EXPECT_EQ(set_.match(unknown).size(), 1u);
}

TEST_F(KnownTest, MessagesMayStandAnywhereInALine) {
  ASSERT_EQ(problems_with(replaced("function: forward_mqa, file: flashmla.py",
                                   "message: 'buffer is ?issing'")),
            "");
  EXPECT_EQ(set_.match(symptom()).size(), 1u);
  Symptom other = symptom();
  other.said = {"AssertionError: the buffer is there"};
  EXPECT_EQ(set_.match(other).size(), 0u);
}

TEST_F(KnownTest, AnEntryAboutAPassingStartSaysSo) {
  ASSERT_EQ(problems_with(replaced("function: forward_mqa, file: flashmla.py, phase: profile",
                                   "message: buffer, outcome: [passed]")),
            "");
  EXPECT_EQ(set_.match(symptom()).size(), 0u);
  Symptom passed = symptom();
  passed.outcome = "passed";
  EXPECT_EQ(set_.match(passed).size(), 1u);
}

TEST_F(KnownTest, TheMorePreciseEntryIsFirstAndALaterFolderReplaces) {
  write("k/good.yaml", kGood);
  std::string wide = replaced("known: good", "known: wide");
  wide.replace(wide.find("type: AssertionError, "), 22, "");
  write("k/wide.yaml", wide);
  write("own/good.yaml", replaced("It falls.", "Ours."));
  scenario::Problems problems;
  set_.read_folder(folder_ / "k", false, problems);
  set_.read_folder(folder_ / "own", false, problems);
  ASSERT_TRUE(problems.empty());
  ASSERT_EQ(set_.entries().size(), 2u);
  const auto found = set_.match(symptom());
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].known->name, "good");
  EXPECT_EQ(found[0].known->about, "Ours.");
}

TEST_F(KnownTest, WhatIsWrongIsSaidWithItsPlace) {
  EXPECT_THAT(problems_with(replaced("known: good", "known: other")),
              HasSubstr("good.yaml:1:8: known: 'other' is not the name of the file, 'good'"));
  EXPECT_THAT(problems_with(replaced("'>=0.10.2 <0.11'", "0.10")),
              HasSubstr("versions: expected >, >=, <, <= or =="));
  EXPECT_THAT(problems_with(replaced("vllm-project/vllm#50615", "50615")),
              HasSubstr("is no reference; write OWNER/REPO#NUMBER"));
  EXPECT_THAT(problems_with(replaced("issue: vllm-project/vllm#50615\n", "")),
              HasSubstr("needs a source"));
  EXPECT_THAT(problems_with(replaced("function: forward_mqa, file: flashmla.py, ", "")),
              HasSubstr("too wide"));
  EXPECT_THAT(problems_with(replaced("function: forward_mqa, file: flashmla.py", "function: '*'")),
              HasSubstr("too wide"));
  EXPECT_THAT(problems_with(replaced("phase: profile", "phase: profil")), HasSubstr("profile"));
  EXPECT_THAT(problems_with(replaced("engine: vllm", "enigne: vllm")), HasSubstr("engine"));
  EXPECT_THAT(problems_with(replaced("log: x\n", "")), HasSubstr("log"));
  EXPECT_THAT(problems_with("{"), HasSubstr("good.yaml:"));
  EXPECT_THAT(problems_with(""), HasSubstr("good.yaml"));
  EXPECT_THAT(problems_with("known: good\n\xff"), HasSubstr("UTF-8"));
}

TEST_F(KnownTest, OneWrongFileDoesNotHideTheOthers) {
  write("k/good.yaml", kGood);
  write("k/bad.yaml", "known: [");
  write("k/notes.txt", "not read");
  scenario::Problems problems;
  set_.read_folder(folder_ / "k", false, problems);
  EXPECT_FALSE(problems.empty());
  EXPECT_EQ(set_.entries().size(), 1u);
}

TEST_F(KnownTest, AFolderThatIsNotThere) {
  scenario::Problems problems;
  set_.read_folder(folder_ / "none", true, problems);
  EXPECT_TRUE(problems.empty());
  set_.read_folder(folder_ / "none", false, problems);
  EXPECT_FALSE(problems.empty());
}

TEST(LinkOf, ReferencesAndUrls) {
  EXPECT_EQ(link_of("vllm-project/vllm#50693", true),
            "https://github.com/vllm-project/vllm/pull/50693");
  EXPECT_EQ(link_of("ggml-org/llama.cpp#1", false),
            "https://github.com/ggml-org/llama.cpp/issues/1");
  EXPECT_EQ(link_of("https://example.org/x", true), "https://example.org/x");
  for (const char* text : {"", "#1", "a#1", "a/b", "a/b#", "/b#1", "a/#1", "a/b#x", "a/b/c#1",
                           "a b/c#1", "http://x", "javascript:x", "a/b#1111111111111"})
    EXPECT_EQ(link_of(text, true), "") << text;
}

}  // namespace
}  // namespace warmgate::explain
