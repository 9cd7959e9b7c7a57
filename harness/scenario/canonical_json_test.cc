#include "harness/scenario/canonical_json.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace warmgate::scenario {
namespace {

using nlohmann::json;

// RFC 8785, appendix B: the bits of a double and what ECMAScript writes.
TEST(CanonicalJson, NumbersOfTheRfc) {
  const std::pair<std::uint64_t, const char*> samples[] = {
      {0x0000000000000000, "0"},
      {0x8000000000000000, "0"},
      {0x0000000000000001, "5e-324"},
      {0x8000000000000001, "-5e-324"},
      {0x7fefffffffffffff, "1.7976931348623157e+308"},
      {0xffefffffffffffff, "-1.7976931348623157e+308"},
      {0x4340000000000000, "9007199254740992"},
      {0xc340000000000000, "-9007199254740992"},
      {0x4430000000000000, "295147905179352830000"},
      {0x44b52d02c7e14af5, "9.999999999999997e+22"},
      {0x44b52d02c7e14af6, "1e+23"},
      {0x44b52d02c7e14af7, "1.0000000000000001e+23"},
      {0x444b1ae4d6e2ef4e, "999999999999999700000"},
      {0x444b1ae4d6e2ef4f, "999999999999999900000"},
      {0x444b1ae4d6e2ef50, "1e+21"},
      {0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7"},
      {0x3eb0c6f7a0b5ed8d, "0.000001"},
      {0x41b3de4355555553, "333333333.3333332"},
      {0x41b3de4355555554, "333333333.33333325"},
      {0x41b3de4355555555, "333333333.3333333"},
      {0x41b3de4355555556, "333333333.3333334"},
      {0x41b3de4355555557, "333333333.33333343"},
      {0xbecbf647612f3696, "-0.0000033333333333333333"},
      {0x43143ff3c1cb0959, "1424953923781206.2"},
  };
  for (const auto& [bits, text] : samples) {
    EXPECT_EQ(es6_number(std::bit_cast<double>(bits)), text);
  }
}

// RFC 8785, 3.2.2 and 3.2.3.
TEST(CanonicalJson, StringsAndOrderOfTheRfc) {
  const json sample = json::parse(R"({
    "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
    "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
    "literals": [null, true, false]})");
  EXPECT_EQ(canonical_json(sample),
            "{\"literals\":[null,true,false],"
            "\"numbers\":[333333333.3333333,1e+30,4.5,0.002,1e-27],"
            "\"string\":\"€$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"}");
  const json keys = json::parse(R"({"\u20ac": 1, "\r": 2, "\ufb33": 3, "1": 4,
                                    "\ud83d\ude00": 5, "\u0080": 6, "\u00f6": 7})");
  EXPECT_EQ(canonical_json(keys),
            "{\"\\r\":2,\"1\":4,\"\xc2\x80\":6,\"ö\":7,\"€\":1,\"😀\":5,\"\xef\xac\xb3\":3}");
}

TEST(CanonicalJson, WhatHasNoCanonicalFormThrows) {
  EXPECT_THROW(canonical_json(std::nan("")), std::invalid_argument);
  EXPECT_THROW(canonical_json(std::numeric_limits<double>::infinity()), std::invalid_argument);
  EXPECT_THROW(canonical_json(std::int64_t{1} << 53), std::invalid_argument);
  EXPECT_THROW(canonical_json(std::numeric_limits<std::int64_t>::min()), std::invalid_argument);
  EXPECT_THROW(canonical_json(std::numeric_limits<std::uint64_t>::max()), std::invalid_argument);
  EXPECT_THROW(canonical_json("\xff"), std::invalid_argument);
  EXPECT_THROW(canonical_json(json{{"\xff", 1}}), std::invalid_argument);
  EXPECT_EQ(canonical_json((std::int64_t{1} << 53) - 1), "9007199254740991");
  EXPECT_EQ(canonical_json(json::object()), "{}");
}

}  // namespace
}  // namespace warmgate::scenario
