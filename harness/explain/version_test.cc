#include "harness/explain/version.h"

#include <gtest/gtest.h>

namespace warmgate::explain {
namespace {

int order(const char* a, const char* b) { return Version::parse(a)->compare(*Version::parse(b)); }

bool in(const char* range, const char* version) {
  std::string why;
  const auto parsed = VersionRange::parse(range, why);
  EXPECT_TRUE(parsed) << range << ": " << why;
  return parsed && parsed->holds(*Version::parse(version));
}

TEST(Version, OrdersWhatEnginesPrint) {
  EXPECT_LT(order("0.9.2", "0.10.0"), 0);
  EXPECT_EQ(order("v0.26", "0.26.0"), 0);
  EXPECT_LT(order("0.26.1rc1", "0.26.1"), 0);
  EXPECT_LT(order("0.26.1rc1.dev77+g6f91edf96", "0.26.1rc1"), 0);
  EXPECT_GT(order("0.26.1rc1.dev77+g6f91edf96", "0.26.0"), 0);
  EXPECT_LT(order("0.26.1rc1.dev77", "0.26.1rc1.dev181"), 0);
  EXPECT_LT(order("0.11.0.dev12", "0.11.0rc1"), 0);
  EXPECT_GT(order("0.4.6.post3", "0.4.6"), 0);
  EXPECT_LT(order("0.4.6.post3", "0.4.7"), 0);
  EXPECT_LT(order("b9272", "b9803"), 0);
  EXPECT_EQ(order("0.6.4 (V0)", "0.6.4"), 0);
  EXPECT_LT(order("1.2.0rc3", "1.2.0"), 0);
}

TEST(Version, WhatIsNone) {
  for (const char* text : {"", "v", "main", "b", "-1", ".5", "version"})
    EXPECT_FALSE(Version::parse(text)) << text;
  EXPECT_TRUE(Version::parse(std::string(100000, '9')));
  EXPECT_TRUE(Version::parse("1.2.3.4.5.6.7.8.9.10.11"));
}

TEST(VersionRange, AllConditionsOfOneAlternative) {
  EXPECT_TRUE(in(">=0.10.2 <0.11", "0.10.2"));
  EXPECT_FALSE(in(">=0.10.2 <0.11", "0.11.0"));
  EXPECT_TRUE(in(">=0.10.2, <0.11", "0.10.9"));
  EXPECT_TRUE(in("==0.26.0 or >=0.27 <0.27.2", "0.27.1"));
  EXPECT_TRUE(in("==0.26.0 or >=0.27 <0.27.2", "0.26"));
  EXPECT_FALSE(in("==0.26.0 or >=0.27 <0.27.2", "0.26.1"));
  // A release candidate of the upper end lies below it.
  EXPECT_TRUE(in("<0.11", "0.11.0rc1"));
}

TEST(VersionRange, SaysWhatIsWrong) {
  for (const char* text : {"", "0.11", ">=", ">=main", "or >=1", ">=1 or", ">= 1"}) {
    std::string why;
    EXPECT_FALSE(VersionRange::parse(text, why)) << text;
    EXPECT_FALSE(why.empty()) << text;
  }
}

}  // namespace
}  // namespace warmgate::explain
