#include "harness/target/server/stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/trace/sha256.h"

namespace warmgate::target {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::int64_t kMs = 1'000'000;

std::vector<std::string> payloads(PayloadReader::Kind kind,
                                  const std::vector<std::string>& pieces) {
  std::vector<std::string> out;
  PayloadReader reader(kind, [&](std::string_view p, std::int64_t) { out.emplace_back(p); });
  for (const std::string& each : pieces) reader.feed(each, 0);
  reader.finish(0);
  return out;
}

TEST(Payloads, ServerSentEvents) {
  using enum PayloadReader::Kind;
  EXPECT_THAT(payloads(kSse, {"data: a\n\ndata:b\n\n: comment\n\nevent: x\nid: 1\ndata: c\n\n"}),
              ElementsAre("a", "b", "c"));
  EXPECT_THAT(payloads(kSse, {"data: a\r\n\r\ndata: b\r\rdata: c\n\n"}),
              ElementsAre("a", "b", "c"));
  EXPECT_THAT(payloads(kSse, {"data: a\ndata: b\n\n"}), ElementsAre("a\nb"));
  EXPECT_THAT(payloads(kSse, {"data:  two blanks\n\ndata\n\n"}), ElementsAre(" two blanks", ""));
  EXPECT_THAT(payloads(kSse, {"data: no end"}), ElementsAre("no end"));
  EXPECT_THAT(payloads(kSse, {"database: x\n\n{\"a\":1}\n\n"}), IsEmpty());
}

TEST(Payloads, AnyPiecesAreTheSame) {
  const std::string text = "data: one\r\n\r\ndata: two\ndata: more\n\ndata: three\r\n\r\n";
  std::vector<std::string> bytes;
  for (const char c : text) bytes.emplace_back(1, c);
  EXPECT_THAT(payloads(PayloadReader::Kind::kSse, bytes), ElementsAre("one", "two\nmore", "three"));
}

TEST(Payloads, JsonLines) {
  EXPECT_THAT(
      payloads(PayloadReader::Kind::kJsonLines, {"{\"a\":", "1}\n\n  \r\n{}\r\n{\"b\"", ":2}"}),
      ElementsAre("{\"a\":1}", "{}\r", "{\"b\":2}"));
}

TEST(Payloads, TooLongOnesAreDroppedAndCounted) {
  std::vector<std::string> out;
  PayloadReader reader(PayloadReader::Kind::kSse,
                       [&](std::string_view p, std::int64_t) { out.emplace_back(p); });
  reader.feed("data: ", 0);
  for (int i = 0; i < 64; ++i) reader.feed(std::string(1 << 16, 'x'), 0);
  reader.feed("\n\ndata: after\n\n", 0);
  // Many lines of one event are as long as one line.
  for (int i = 0; i < 64; ++i) reader.feed("data: " + std::string(1 << 16, 'y') + "\n", 0);
  reader.feed("\n", 0);
  reader.finish(0);
  ASSERT_FALSE(out.empty());
  EXPECT_EQ(out[0], "after");
  EXPECT_GE(reader.dropped(), 2u);
  for (const std::string& each : out) EXPECT_LE(each.size(), PayloadReader::kMaxPayload);
}

Completion openai() {
  Completion c;
  c.done = "[DONE]";
  c.text = {"/choices/0/text", "/choices/0/delta/content", "/choices/0/delta/reasoning_content"};
  c.tokens = {"/usage/completion_tokens"};
  c.prompt_tokens = {"/usage/prompt_tokens"};
  c.error = {"/error/message", "/error"};
  c.shows = {{"logprobs", {"/choices/0/logprobs"}}};
  return c;
}

// Chunks that come 10 ms after each other, the first at 10 ms.
StreamResult read(const Completion& c, const std::vector<std::string>& chunks,
                  const std::string& request_class = "greedy") {
  AnswerReader reader(c, request_class);
  std::int64_t t = 0;
  for (const std::string& each : chunks) reader.feed(each, t += 10 * kMs);
  return reader.finish(t + kMs);
}

std::string sse(const std::string& payload) { return "data: " + payload + "\n\n"; }
std::string text(const std::string& t, const std::string& more = "") {
  return sse(R"({"choices":[{"text":")" + t + "\"" + more + "}]}");
}

TEST(Answer, CompletionsWithUsage) {
  const StreamResult r =
      read(openai(), {text("a"), text("bc"), text("d"),
                      sse(R"({"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":5}})"),
                      sse("[DONE]")});
  EXPECT_EQ(r.text, "abcd");
  EXPECT_EQ(r.text_bytes, 4u);
  EXPECT_EQ(r.text_sha256, trace::sha256_hex("abcd"));
  EXPECT_EQ(r.tokens, 5);
  EXPECT_EQ(r.tokens_from, "usage");
  EXPECT_EQ(r.prompt_tokens, 7);
  EXPECT_EQ(r.chunks, 3);
  EXPECT_EQ(r.first_ns, 10 * kMs);
  EXPECT_EQ(r.last_ns, 30 * kMs);
  EXPECT_THAT(r.gaps_ms, ElementsAre(10, 10));
  EXPECT_EQ(r.gaps_between, "chunk");
  EXPECT_TRUE(r.done);
  EXPECT_EQ(r.error, "");
}

TEST(Answer, WithoutUsageChunksAreCountedAndThatIsSaid) {
  const StreamResult r = read(openai(), {text("a"), text(""), text("b"), sse("[DONE]")});
  EXPECT_EQ(r.tokens, 2);
  EXPECT_EQ(r.tokens_from, "chunks");
  EXPECT_FALSE(r.prompt_tokens.has_value());
}

TEST(Answer, ChatBeginsWithARoleAndNoText) {
  const StreamResult r =
      read(openai(), {sse(R"({"choices":[{"delta":{"role":"assistant","content":""}}]})"),
                      sse(R"({"choices":[{"delta":{"content":"hi"}}]})"), sse("[DONE]")});
  EXPECT_EQ(r.first_ns, 20 * kMs);
  EXPECT_EQ(r.tokens, 1);
}

TEST(Answer, TokensWithoutTextCountWhereTheServerSaysSo) {
  const StreamResult r =
      read(openai(), {text(""), text(""), sse(R"({"choices":[],"usage":{"completion_tokens":2}})"),
                      sse("[DONE]")});
  EXPECT_EQ(r.tokens, 2);
  EXPECT_EQ(r.first_ns, 10 * kMs);
  EXPECT_EQ(r.chunks, 2);
  const StreamResult none = read(openai(), {text(""), sse("[DONE]")});
  EXPECT_FALSE(none.tokens.has_value());
  EXPECT_EQ(none.first_ns, 0);
}

TEST(Answer, SeveralTokensAChunkAreSeveralGaps) {
  const std::string first = R"(data: {"usage":{"completion_tokens":1},"choices":[{"text":"a"}]})";
  const std::string second =
      R"(data: {"usage":{"completion_tokens":5},"choices":[{"text":"bcde"}]})";
  const StreamResult r = read(openai(), {first + "\n\n", second + "\n\n", sse("[DONE]")});
  EXPECT_EQ(r.gaps_between, "token");
  EXPECT_THAT(r.gaps_ms, ElementsAre(2.5, 2.5, 2.5, 2.5));
  EXPECT_EQ(r.tokens, 5);
}

TEST(Answer, TextSoFar) {
  Completion c;
  c.done = "[DONE]";
  c.text = {"/text"};
  c.text_so_far = true;
  c.tokens = {"/meta_info/completion_tokens"};
  const StreamResult r =
      read(c, {sse(R"({"text":"a","meta_info":{"completion_tokens":1}})"),
               sse(R"({"text":"ab","meta_info":{"completion_tokens":2}})"),
               sse(R"({"text":"ab","meta_info":{"completion_tokens":3}})"), sse("[DONE]")});
  EXPECT_EQ(r.text, "ab");
  EXPECT_EQ(r.tokens, 3);
}

TEST(Answer, ADoneThatIsAField) {
  Completion c;
  c.done = "/stop";
  c.text = {"/content"};
  c.tokens = {"/tokens_predicted"};
  EXPECT_TRUE(read(c, {sse(R"({"content":"a","stop":false})"),
                       sse(R"({"content":"","stop":true,"tokens_predicted":1})")})
                  .done);
  EXPECT_FALSE(read(c, {sse(R"({"content":"a","stop":false})")}).done);
  c.done = "/generated_text";
  EXPECT_FALSE(read(c, {sse(R"({"generated_text":null})")}).done);
  EXPECT_TRUE(read(c, {sse(R"({"generated_text":""})")}).done);
  c.done = "";
  EXPECT_TRUE(read(c, {}).done);
}

TEST(Answer, ErrorsInsideTheStream) {
  const StreamResult r =
      read(openai(), {text("a"), sse(R"({"error":{"message":"engine died","code":500}})")});
  EXPECT_EQ(r.error, "engine died");
  EXPECT_FALSE(r.done);
  EXPECT_EQ(read(openai(), {sse(R"({"error":{"code":500}})")}).error, R"({"code":500})");
  EXPECT_EQ(read(openai(), {sse(R"({"error":null})")}).error, "");
  EXPECT_EQ(read(openai(), {sse(R"({"error":")" + std::string(9000, 'x') + "\"}")}).error.size(),
            500u);
}

TEST(Answer, TheClassIsSeenWhereItsFieldIs) {
  const std::string with = text("a", R"(,"logprobs":{"tokens":["a"]})");
  const std::string without = text("a", R"(,"logprobs":null)");
  EXPECT_TRUE(read(openai(), {with}, "logprobs").class_seen);
  EXPECT_FALSE(read(openai(), {without}, "logprobs").class_seen);
  EXPECT_FALSE(read(openai(), {with}, "greedy").class_seen);
}

TEST(Answer, FiguresThatAnAnswerCarries) {
  Completion c = openai();
  c.figures = {{"draft_tokens", {"/timings/draft_n"}}, {"accepted_tokens", {"/timings/accepted"}}};
  const StreamResult r = read(c, {text("a"), sse(R"({"timings":{"draft_n":4,"accepted":"x"}})"),
                                  sse(R"({"timings":{"draft_n":6}})")});
  EXPECT_EQ(r.figures, (std::map<std::string, double>{{"draft_tokens", 6}}));
}

TEST(Answer, GarbageIsCounted) {
  const StreamResult r = read(
      openai(), {sse("{"), sse("nothing"), sse("3"), sse("[1,2]"), sse(R"({"choices":"x"})"),
                 sse(R"({"choices":[{"text":5}]})"), sse(R"({"usage":{"completion_tokens":-4}})"),
                 sse(R"({"usage":{"completion_tokens":1e300}})"), sse("\xff\xfe"), text("ok"),
                 sse("[DONE]")});
  EXPECT_EQ(r.bad_payloads, 3u);
  EXPECT_EQ(r.text, "ok");
  EXPECT_EQ(r.tokens, 1);
  EXPECT_TRUE(r.done);
}

TEST(Answer, TextIsBounded) {
  std::vector<std::string> chunks(40, text(std::string(1000, 'x')));
  const StreamResult r = read(openai(), chunks);
  EXPECT_EQ(r.text.size(), StreamResult::kMaxText);
  EXPECT_EQ(r.text_bytes, 40000u);
  EXPECT_EQ(r.text_sha256, trace::sha256_hex(std::string(40000, 'x')));
}

TEST(Answer, NotStreamed) {
  Completion c = openai();
  c.stream = "none";
  c.done = "";
  const StreamResult r = read(
      c,
      {R"({"choices":[{"te)", R"(xt":"ab"}],"usage":{"completion_tokens":2,"prompt_tokens":3}})"});
  EXPECT_EQ(r.text, "ab");
  EXPECT_EQ(r.tokens, 2);
  EXPECT_EQ(r.first_ns, 0) << "when the first token came was not seen";
  EXPECT_THAT(r.gaps_ms, IsEmpty());
  EXPECT_TRUE(r.done);
  EXPECT_EQ(read(c, {"<html>"}).bad_payloads, 1u);
  EXPECT_EQ(read(c, {std::string(2 << 20, ' ')}).bad_payloads, 1u);
  EXPECT_FALSE(read(c, {R"({"choices":[{"text":"ab"}]})"}).tokens.has_value());
}

TEST(Answer, PointersThatAreNoneAreLeftOut) {
  Completion c = openai();
  c.text.insert(c.text.begin(), "no pointer");
  c.tokens = {"/~9"};
  EXPECT_EQ(read(c, {text("a")}).text, "a");
}

}  // namespace
}  // namespace warmgate::target
