#include "harness/trace/event.h"

#include <gtest/gtest.h>

#include <random>

#include "harness/trace/glob.h"
#include "harness/trace/sha256.h"
#include "harness/trace/wire.h"

namespace warmgate::trace {
namespace {

Trace read_in_pieces(const std::string& text, std::size_t piece) {
  Trace trace;
  LineReader reader("test", trace);
  for (std::size_t i = 0; i < text.size(); i += piece)
    reader.feed(std::string_view(text).substr(i, piece));
  reader.finish();
  return trace;
}

TEST(LineReader, PiecesDoNotMatter) {
  const std::string text = R"({"ev":"bye","t":1,"rank":0})"
                           "\n"
                           R"({"ev":"x","t":2,"rank":null,"a":"\u00e9"})"
                           "\n\n"
                           R"({"ev":"bye","t":3})"
                           "\n";
  for (std::size_t piece : {1u, 2u, 3u, 7u, 1000u}) {
    const Trace trace = read_in_pieces(text, piece);
    EXPECT_EQ(trace.bad_lines.size(), 0u);
    ASSERT_EQ(trace.events.size(), 3u);
    EXPECT_EQ(trace.events[1].str("a"), "é");
    EXPECT_EQ(trace.events[2].line, 4u);
  }
}

TEST(LineReader, SaysWhatIsWrongWithALine) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"garbage", "not JSON"},
      {"[1]", "not an object"},
      {R"({"t":1})", "'ev' is missing"},
      {R"({"ev":5,"t":1})", "'ev' is missing"},
      {R"({"ev":"bye"})", "'t'"},
      {R"({"ev":"bye","t":"1"})", "'t'"},
      {R"({"ev":"phase_begin","t":1})", "'phase' must be a string"},
      {R"({"ev":"alloc","t":1,"pool":"p","bytes":"many","owner":"o","lifetime":"l"})",
       "'bytes' must be a number"},
      {std::string("{\"ev\":\"x\",\"t\":1}\0", 18), "not JSON"}};
  for (const auto& [line, why] : cases) {
    const Trace trace = read_in_pieces(line + "\n", 1000);
    ASSERT_EQ(trace.bad_lines.size(), 1u) << line;
    EXPECT_NE(trace.bad_lines[0].why.find(why), std::string::npos) << trace.bad_lines[0].why;
    EXPECT_EQ(trace.bad_lines[0].line, 1u);
  }
}

TEST(LineReader, AProcessUnderTestIsNotTheHarness) {
  Trace trace;
  LineReader reader("test", trace);
  const std::string forged = R"({"ev":"deadline","t":1,"src":"harness","phase":"x","kind":"y"})"
                             "\n";
  reader.feed(forged);
  EXPECT_EQ(trace.events.size(), 1u) << "a kept trace holds such lines";
  reader.refuse_harness();
  reader.feed(forged);
  EXPECT_EQ(trace.events.size(), 1u);
  ASSERT_EQ(trace.bad_lines.size(), 1u);
  EXPECT_NE(trace.bad_lines[0].why.find("warmgate's own"), std::string::npos);
}

TEST(LineReader, WhatTheHarnessSawIsNotForAProcessUnderTestToSay) {
  Trace trace;
  LineReader reader("test", trace);
  reader.refuse_harness();
  for (const char* kind : {"process_end", "leftover", "gpu_memory", "deadline", "stop", "store"})
    reader.feed(std::string("{\"ev\":\"") + kind + "\",\"t\":1}\n");
  EXPECT_TRUE(trace.events.empty());
  EXPECT_EQ(trace.bad_lines.size(), 6u);
}

TEST(LineReader, HalfALineIsBad) {
  const Trace trace = read_in_pieces(R"({"ev":"bye","t":1})", 5);
  EXPECT_EQ(trace.events.size(), 0u);
  ASSERT_EQ(trace.bad_lines.size(), 1u);
  EXPECT_NE(trace.bad_lines[0].why.find("half a line"), std::string::npos);
}

TEST(LineReader, AnEndlessLineIsThrownAwayAndTheNextIsRead) {
  Trace trace;
  LineReader reader("test", trace);
  const std::string chunk(1 << 20, 'a');
  for (int i = 0; i < 100; ++i) reader.feed(chunk);
  reader.feed("\n{\"ev\":\"bye\",\"t\":1}\n");
  ASSERT_EQ(trace.bad_lines.size(), 1u);
  EXPECT_LE(trace.bad_lines[0].excerpt.size(), 200u);
  ASSERT_EQ(trace.events.size(), 1u);
  EXPECT_EQ(trace.events[0].line, 2u);
}

TEST(LineReader, GarbageIsBounded) {
  Trace trace;
  LineReader reader("test", trace);
  for (int i = 0; i < 5000; ++i) reader.feed("garbage\n");
  EXPECT_EQ(trace.bad_lines.size(), 100u);
  for (std::size_t i = 0; i < kMaxLinesPerRun + 1000; ++i) reader.feed("{\"ev\":\"x\",\"t\":1}\n");
  EXPECT_LE(trace.events.size(), kMaxLinesPerRun + 100);
}

TEST(LineReader, RandomBytesNeverThrow) {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    std::string bytes(random() % 300, '\0');
    for (char& c : bytes)
      c = random() % 3 ? static_cast<char>(random()) : "{}[]\":,\n"[random() % 8];
    read_in_pieces(bytes, 1 + random() % 50);
  }
}

TEST(Event, FieldsNeverThrow) {
  const Event e =
      parse_event(R"({"ev":"x","t":1,"rank":"zero","s":5,"n":"five","f":1e300,"a":["q",1]})");
  EXPECT_EQ(e.rank, std::nullopt);
  EXPECT_EQ(e.str("s", "fallback"), "fallback");
  EXPECT_EQ(e.num("n", -1), -1);
  EXPECT_EQ(e.num("f", -1), -1);
  EXPECT_EQ(e.strings("a"), std::vector<std::string>{"q"});
  EXPECT_EQ(e.strings("s"), std::vector<std::string>{});
  EXPECT_FALSE(e.flag("s"));
  for (const char* rank : {"-1", "4294967296", "18446744073709551615", "1.5", "null"}) {
    const std::string line = std::string(R"({"ev":"x","t":1,"rank":)") + rank + "}";
    EXPECT_EQ(parse_event(line).rank, std::nullopt) << rank;
  }
}

TEST(Event, ToLineIsTheInverse) {
  const std::string line = R"({"ev":"x","t":5,"rank":2,"src":"harness","a":[1,"b"],"z":null})";
  EXPECT_EQ(to_line(parse_event(line)), line);
}

TEST(Trace, PhaseAtFollowsTheRank) {
  Trace trace = read_in_pieces(
      "{\"ev\":\"x\",\"t\":1,\"rank\":0}\n{\"ev\":\"phase_begin\",\"t\":2,\"rank\":0,\"phase\":"
      "\"load\"}\n"
      "{\"ev\":\"phase_begin\",\"t\":3,\"rank\":1,\"phase\":\"kv\"}\n{\"ev\":\"x\",\"t\":4,"
      "\"rank\":0}\n",
      4096);
  EXPECT_EQ(trace.phase_at(0), "");
  EXPECT_EQ(trace.phase_at(3), "load");
}

TEST(Glob, StarsAndLiterals) {
  EXPECT_TRUE(glob_match("", ""));
  EXPECT_TRUE(glob_match("*", ""));
  EXPECT_TRUE(glob_match("Combine{R=128,*", "Combine{R=128,K=8192}"));
  EXPECT_FALSE(glob_match("Combine{R=128,*", "Combine{R=1,K=8192}"));
  EXPECT_TRUE(glob_match("a*b*c", "aXbYbZc"));
  EXPECT_FALSE(glob_match("a*b*c", "aXbYbZ"));
  EXPECT_TRUE(glob_match("?b", "ab"));
  EXPECT_FALSE(glob_match("?", ""));
  EXPECT_FALSE(glob_match("[ab]", "a"));
  EXPECT_TRUE(glob_match("[ab]", "[ab]"));
  EXPECT_TRUE(glob_match("*b", "*ab"));
  // Linear in practice: no exponential backtracking.
  EXPECT_FALSE(glob_match("*a*a*a*a*a*a*a*a*a*b", std::string(20000, 'a')));
}

TEST(Sha256, FipsVectors) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_hex(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  // Lengths around the padding's block edges differ from each other.
  std::set<std::string> digests;
  for (std::size_t n = 54; n <= 66; ++n) digests.insert(sha256_hex(std::string(n, 'x')));
  EXPECT_EQ(digests.size(), 13u);
}

}  // namespace
}  // namespace warmgate::trace
