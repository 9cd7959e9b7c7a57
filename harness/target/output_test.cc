// What is kept of what a worker printed, and what is masked in it.
#include <gmock/gmock.h>

#include "harness/target/capture.h"
#include "harness/target/mask.h"

namespace warmgate::target {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(Capture, WhatLooksLikeACause) {
  for (const char* line :
       {"RuntimeError: x", "ERROR 1", "Traceback (most recent call last):", "assertion failed",
        "Killed", "CUDA out of memory", "terminate called", "std::bad_alloc", "kernel panic",
        "Segmentation fault", "AddressSanitizer: x", "core aborted", "FATAL x", "an Exception",
        "got SIGSEGV, segfault at 0"}) {
    EXPECT_TRUE(looks_like_cause(line)) << line;
    // The filter must let it pass at every place in a longer text.
    for (int before = 0; before < 40; ++before) {
      for (int after : {0, 1, 7, 16, 30}) {
        EXPECT_TRUE(may_hold_cause(std::string(static_cast<std::size_t>(before), '-') + line +
                                   std::string(static_cast<std::size_t>(after), '.')))
            << line << " at " << before;
      }
    }
  }
  EXPECT_FALSE(looks_like_cause("loading weights"));
  EXPECT_FALSE(may_hold_cause("INFO loading layer 3 of the model, please hold on"));
}

TEST(Capture, TheSameInAnyPieces) {
  const std::vector<std::string> secrets = {"s3cr3t-value"};
  std::string text;
  for (int i = 0; i < 4000; ++i) {
    text += "line " + std::to_string(i) + (i % 97 == 0 ? " error s3cr3t-value" : " fine") + "\n";
  }
  text += "fatal without a newline s3cr3t-value";
  verdict::Output whole;
  Capture all(secrets);
  all.feed(text);
  all.finish(whole);
  for (const std::size_t piece : {1u, 3u, 17u, 4095u, 4096u, 70000u}) {
    Capture capture(secrets);
    for (std::size_t at = 0; at < text.size(); at += piece) {
      capture.feed(std::string_view(text).substr(at, piece));
    }
    verdict::Output out;
    capture.finish(out);
    EXPECT_EQ(out.bytes, text.size());
    EXPECT_EQ(out.head, whole.head);
    EXPECT_EQ(out.tail, whole.tail);
    EXPECT_EQ(out.matched, whole.matched);
  }
  EXPECT_EQ(whole.matched.size(), 43u);
  EXPECT_EQ(whole.matched.back(), "fatal without a newline [secret]");
  EXPECT_THAT(whole.head + whole.tail, Not(HasSubstr("s3cr3t")));
}

TEST(Capture, SmallOutputIsWhole) {
  const std::vector<std::string> none;
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{5}, Capture::kHeadBytes, Capture::kHeadBytes + 1,
        Capture::kHeadBytes + Capture::kTailBytes}) {
    Capture capture(none);
    std::string text;
    for (std::size_t i = 0; i < size; ++i) text += static_cast<char>('a' + i % 23);
    capture.feed(text);
    verdict::Output out;
    capture.finish(out);
    EXPECT_EQ(out.head, text);
    EXPECT_EQ(out.tail, "");
  }
}

TEST(Capture, NoSecretIsCutInHalfAtABorder) {
  const std::vector<std::string> secrets = {"0123456789abcdef"};
  for (std::size_t shift = 0; shift < 20; ++shift) {
    Capture capture(secrets);
    std::string text(Capture::kHeadBytes - 18 + shift, '-');
    text += secrets[0];
    text += std::string(100000, '-');
    text += secrets[0];
    text += std::string(Capture::kTailBytes - 18 + shift, '-');
    capture.feed(text);
    verdict::Output out;
    capture.finish(out);
    EXPECT_THAT(out.head, Not(HasSubstr("0"))) << shift;
    EXPECT_THAT(out.head, Not(HasSubstr("a"))) << shift;
    EXPECT_THAT(out.tail, Not(HasSubstr("f"))) << shift;
  }
}

TEST(Capture, MatchedLinesAreBound) {
  const std::vector<std::string> none;
  Capture capture(none);
  for (int i = 0; i < 5000; ++i) capture.feed("error " + std::to_string(i) + "\r\n");
  capture.feed("error " + std::string(100000, 'x') + "\n");
  verdict::Output out;
  capture.finish(out);
  ASSERT_EQ(out.matched.size(), Capture::kMatchedLines);
  EXPECT_EQ(out.matched[0], "error 0");
  EXPECT_EQ(out.matched[49], "error 49");
  EXPECT_EQ(out.matched[50], "error 4951");
  EXPECT_EQ(out.matched[99].size(), Capture::kLineBytes);
}

TEST(Mask, NamesOfSecrets) {
  for (const char* name :
       {"HF_TOKEN", "hf_token", "AWS_SECRET_ACCESS_KEY", "API_KEY", "OPENAI_APIKEY", "DB_PASSWORD",
        "GOOGLE_CREDENTIALS", "GH_PAT", "MYSQL_PWD", "X_AUTH", "PGPASS_PASSWORD", "NGC_CLI_API_KEY",
        "HFTOKEN", "SSH_PRIVATE_KEY"}) {
    EXPECT_TRUE(is_secret_name(name)) << name;
  }
  for (const char* name :
       {"PATH", "PWD", "OLDPWD", "TOKENIZERS_PARALLELISM", "KEYMAP", "HOME", "", "CUDA_PATH",
        "MAX_NUM_BATCHED_TOKENS", "PATTERN", "AUTHORS", "_", "HF_TOKEN_PATH", "SSH_KEY_FILE"}) {
    EXPECT_FALSE(is_secret_name(name)) << name;
  }
}

TEST(Mask, CollectsValues) {
  const char* env[] = {"HF_TOKEN=hf_abcdefgh",
                       "SHORT_TOKEN=abc",
                       "EMPTY_KEY=",
                       "A_TOKEN=1048576",
                       "NOVALUE",
                       "PROXY=http://user:pa55word@host:80/x",
                       "PLAIN=http://host/u:p",
                       "SAME_TOKEN=hf_abcdefgh",
                       "X_KEY=hf_abcdefgh-and-more",
                       nullptr};
  EXPECT_THAT(collect_secrets(env), ElementsAre("hf_abcdefgh-and-more", "hf_abcdefgh", "pa55word"));
  EXPECT_THAT(collect_secrets(nullptr), IsEmpty());
}

TEST(Mask, ReplacesEveryOccurrence) {
  EXPECT_EQ(mask("a secret1 b secret1secret1", {"secret1"}), "a [secret] b [secret][secret]");
  EXPECT_EQ(mask("abcabcabc", {"abcabc"}), "[secret]") << "overlapping ones are one stretch";
  EXPECT_EQ(mask("nothing", {}), "nothing");
  EXPECT_EQ(mask("x", {""}), "x");
  EXPECT_EQ(mask_part("--secret1--", 4, 11, {"secret1"}), "[secret]--");
}

TEST(Mask, LinesLongerThanAnythingThatIsKept) {
  for (const std::size_t size :
       {std::size_t{1} << 18, (std::size_t{1} << 18) + 1, std::size_t{3} << 20}) {
    SecretSpotter whole({"secret1"}), pieces({"secret1"});
    const std::string line(size, 'x');
    whole.feed(line);
    EXPECT_FALSE(whole.seen()) << size;
    whole.feed("secret1");
    EXPECT_TRUE(whole.seen()) << size;
    for (std::size_t at = 0; at < size; at += 1 << 16)
      pieces.feed(std::string_view(line).substr(at, 1 << 16));
    EXPECT_FALSE(pieces.seen()) << size;
  }
}

TEST(Mask, SpotsSecretsAcrossPieces) {
  const std::vector<std::string> secrets = {"s\"ecret", "another-one"};
  for (const std::string text : {"xx s\"ecret", "{\"a\":\"s\\\"ecret\"}", "another-one"}) {
    SecretSpotter spotter(secrets);
    for (const char c : text) spotter.feed({&c, 1});
    EXPECT_TRUE(spotter.seen()) << text;
  }
  SecretSpotter spotter(secrets);
  for (int i = 0; i < 100; ++i) spotter.feed("another-on secret ");
  EXPECT_FALSE(spotter.seen());
}

}  // namespace
}  // namespace warmgate::target
