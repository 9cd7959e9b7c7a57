#include "harness/trace/fields.h"

#include <gtest/gtest.h>

#include <limits>

#include "harness/trace/event.h"

namespace warmgate::trace {
namespace {

TEST(Fields, GiveBackWhatWasPutIn) {
  const json all = {{"text", "a \"b\" \n é"}, {"n", -3},  {"r", 0.25},           {"yes", true},
                    {"nothing", nullptr},     {"l", {1}}, {"o", {{"a", {1, 2}}}}};
  const Fields fields(all);
  EXPECT_EQ(fields.to_json(), all);
  EXPECT_EQ(fields.text("text"), "a \"b\" \n é");
  EXPECT_EQ(fields.num("n"), -3);
  EXPECT_EQ(fields.real("n"), -3.0);
  EXPECT_EQ(fields.num("r"), 0);
  EXPECT_TRUE(fields.flag("yes"));
  EXPECT_EQ(fields.nested("l")->size(), 1u);
  EXPECT_EQ(fields.value("o"), all["o"]);
}

TEST(Fields, AnotherTypeIsTheFallback) {
  const Fields fields = {{"text", "x"}, {"n", 1}, {"nothing", nullptr}};
  EXPECT_EQ(fields.num("text", 7), 7);
  EXPECT_EQ(fields.text("n", "f"), "f");
  EXPECT_TRUE(fields.flag("n", true));
  EXPECT_EQ(fields.nested("text"), nullptr);
  EXPECT_TRUE(fields.contains("nothing"));
  EXPECT_FALSE(fields.contains("absent"));
  EXPECT_FALSE(fields.contains("tex"));
}

TEST(Fields, OfTwoWithOneNameTheLaterCounts) {
  Fields fields = {{"n", 1}};
  fields.set("n", "two");
  EXPECT_EQ(fields.text("n"), "two");
  EXPECT_EQ(fields.to_json(), json({{"n", "two"}}));
  const Event event = parse_event(R"({"ev":"x","t":1,"n":1,"n":2})");
  EXPECT_EQ(event.num("n"), 2);
}

TEST(Fields, SurviveCopiesAndMoves) {
  Fields a = {{"k", "short"}, {"l", std::string(100, 'x')}};
  Fields b = a;
  a.set("k", "changed");
  const Fields c = std::move(b);
  EXPECT_EQ(c.text("k"), "short");
  EXPECT_EQ(c.text("l").size(), 100u);
}

TEST(Fields, NumbersBeyondInt64AreReal) {
  const Event event = parse_event(R"({"ev":"x","t":1,"n":18446744073709551615})");
  EXPECT_EQ(event.body.kind("n"), Fields::Kind::kReal);
  EXPECT_EQ(event.num("n", 5), 5);
}

TEST(Fields, OnlyAnObjectHasFields) { EXPECT_THROW(Fields(json::array()), std::invalid_argument); }

TEST(ParseEvent, HeadersAreNotFields) {
  const Event event = parse_event(
      R"({"ev":"x","t":5,"rank":3,"src":"log","res_ns":9,"a":{"ev":"y","t":6,"b":[{"c":[]}]}})");
  EXPECT_EQ(event.ev, "x");
  EXPECT_EQ(event.t_ns, 5);
  EXPECT_EQ(event.rank, 3);
  EXPECT_EQ(event.src, "log");
  EXPECT_EQ(event.res_ns, 9);
  EXPECT_EQ(event.body.to_json(), json::parse(R"({"a":{"ev":"y","t":6,"b":[{"c":[]}]}})"));
}

TEST(ParseEvent, DeepNestingIsRefused) {
  const std::string open(100'000, '['), close(100'000, ']');
  EXPECT_THROW(parse_event(R"({"ev":"x","t":1,"a":)" + open + close + "}"), std::runtime_error);
}

TEST(ParseEvent, SaysWhatIsWrong) {
  const auto why = [](std::string_view line) -> std::string {
    try {
      parse_event(line);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(why("[1]").find("not an object"), std::string::npos);
  EXPECT_NE(why("7").find("not an object"), std::string::npos);
  EXPECT_NE(why("[1").find("not JSON"), std::string::npos);
  EXPECT_NE(why(R"({"ev":"x","t":1}{})").find("not JSON"), std::string::npos);
  EXPECT_NE(why(R"({"ev":1,"t":1})").find("'ev'"), std::string::npos);
  EXPECT_NE(why(R"({"ev":"x","t":1.5})").find("'t'"), std::string::npos);
  EXPECT_NE(why(R"({"ev":"x","t":"1"})").find("'t'"), std::string::npos);
  EXPECT_NE(why(R"({"ev":{"a":1},"t":1})").find("'ev'"), std::string::npos);
}

}  // namespace
}  // namespace warmgate::trace
