#include "harness/scenario/scalars.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

namespace warmgate::scenario {
namespace {

using ::testing::HasSubstr;

TEST(Scalars, IntegersAreDecimalAndExact) {
  EXPECT_EQ(*read_integer("0").value, 0);
  EXPECT_EQ(*read_integer("-7").value, -7);
  EXPECT_EQ(*read_integer("9007199254740991").value, kMaxInteger);
  EXPECT_THAT(read_integer("9007199254740992").why, HasSubstr("largest integer"));
  EXPECT_THAT(read_integer("99999999999999999999999").why, HasSubstr("largest integer"));
  EXPECT_THAT(read_integer("-99999999999999999999999").why, HasSubstr("largest integer"));
  EXPECT_THAT(read_integer("010").why, HasSubstr("octal"));
  EXPECT_THAT(read_integer("1e6").why, HasSubstr("write 1000000"));
  EXPECT_THAT(read_integer("8.0").why, HasSubstr("write 8"));
  EXPECT_THAT(read_integer("1_000").why, HasSubstr("write 1000"));
  EXPECT_THAT(read_integer("0x10").why, HasSubstr("decimal"));
  EXPECT_THAT(read_integer("5 s").why, HasSubstr("without a unit"));
  EXPECT_THAT(read_integer("10 %").why, HasSubstr("without a unit"));
  for (const char* bad : {"", " ", "-", "+5", "5 5", "1.5", ".5", "5.", "yes", "nan", ".inf",
                          "1e400", "--5", "0b1", "1e-3"}) {
    EXPECT_FALSE(read_integer(bad)) << bad;
  }
}

TEST(Scalars, RealsAreFinite) {
  EXPECT_EQ(*read_real("1e-6").value, 1e-6);
  EXPECT_EQ(*read_real("-2.5").value, -2.5);
  for (const char* bad :
       {"", "nan", ".nan", "inf", "-.inf", "1e999", "1,5", "0x1p3", "01.5", "1.5 s", "five"}) {
    EXPECT_FALSE(read_real(bad)) << bad;
  }
}

TEST(Scalars, BoolsAreTrueAndFalseOnly) {
  EXPECT_TRUE(*read_bool("true").value);
  EXPECT_FALSE(*read_bool("false").value);
  for (const char* bad : {"yes", "no", "on", "off", "True", "1", "0", "y", ""}) {
    EXPECT_THAT(read_bool(bad).why, HasSubstr("true or false")) << bad;
  }
}

TEST(Scalars, QuantitiesKnowTheirUnits) {
  EXPECT_DOUBLE_EQ(*read_quantity("5 s", "s").value, 5);
  EXPECT_DOUBLE_EQ(*read_quantity("500ms", "s").value, 0.5);
  EXPECT_DOUBLE_EQ(*read_quantity("2 min", "s").value, 120);
  EXPECT_DOUBLE_EQ(*read_quantity("7", "s").value, 7);
  EXPECT_DOUBLE_EQ(*read_quantity("10 %", "%").value, 10);
  EXPECT_DOUBLE_EQ(*read_quantity("12 tokens", "tokens").value, 12);
  EXPECT_THAT(read_quantity("5 GiB", "s").why, HasSubstr("does not fit"));
  EXPECT_THAT(read_quantity("5 sec", "s").why, HasSubstr("unit 'sec'"));
  EXPECT_THAT(read_quantity("5 Mib", "bytes").why, HasSubstr("did you mean MiB?"));
  EXPECT_FALSE(read_quantity("s", "s"));
  EXPECT_FALSE(read_quantity("5 s s", "s"));
  EXPECT_FALSE(read_quantity("05 s", "s"));
}

TEST(Scalars, BytesAreWhole) {
  EXPECT_EQ(*read_bytes("288000000000").value, 288000000000);
  EXPECT_EQ(*read_bytes("1 GiB").value, 1073741824);
  EXPECT_EQ(*read_bytes("1.5 KiB").value, 1536);
  EXPECT_EQ(*read_bytes("2 GB").value, 2000000000);
  EXPECT_THAT(read_bytes("0.3 KiB").why, HasSubstr("whole number of bytes"));
  EXPECT_THAT(read_bytes("99999999999 TiB").why, HasSubstr("beyond"));
  EXPECT_THAT(read_bytes("1 GHz").why, HasSubstr("does not fit"));
  EXPECT_THAT(read_bytes("010").why, HasSubstr("octal"));
}

Bound bound(const std::string& text, std::string_view unit = "") {
  const auto out = read_bound(text, unit);
  EXPECT_TRUE(out) << text << ": " << out.why;
  return out.value.value_or(Bound{});
}

TEST(Scalars, BoundsHoldAtTheirEdges) {
  EXPECT_TRUE(bound("5").holds(5));
  EXPECT_FALSE(bound("5").holds(5.0000001));
  EXPECT_FALSE(bound("> 5").holds(5));
  EXPECT_TRUE(bound(">5").holds(5.1));
  EXPECT_TRUE(bound(">= 5").holds(5));
  EXPECT_FALSE(bound("< 5").holds(5));
  EXPECT_TRUE(bound("<= 5").holds(5));
  EXPECT_TRUE(bound("1..5").holds(1));
  EXPECT_TRUE(bound("1.5..5").holds(5));
  EXPECT_FALSE(bound("1..5").holds(5.1));
  EXPECT_TRUE(bound("100 ± 1%").holds(101));
  EXPECT_TRUE(bound("100 +- 1 %").holds(99));
  EXPECT_FALSE(bound("100 ± 1%").holds(101.1));
  EXPECT_TRUE(bound("-100 ± 1%").holds(-101));
  EXPECT_TRUE(bound("0 ± 1%").holds(0));
  EXPECT_FALSE(bound(">= 5").holds(std::nan("")));
  EXPECT_EQ(bound("<= 1 GiB", "bytes").low, 1073741824);
  EXPECT_EQ(bound("1 s..2 min", "s").high, 120);
  EXPECT_EQ(bound("8.80 ± 0.1%").text, "8.80 ± 0.1%");
  EXPECT_TRUE(bound("8.80 ± 0.1%").holds(8.7952));
  EXPECT_FALSE(bound("8.80 ± 0.05%").holds(8.7952));
}

TEST(Scalars, BoundsThatAreNone) {
  for (const char* bad : {"", ">", "> ", "=5", "== 5", "5..", "..5", "5..1", "5 ± 1", "5 ± -1%",
                          "± 1%", "nan", "> nan", "1...2", "5 GiB", "a..b", "5 ± x%"}) {
    EXPECT_THAT(read_bound(bad, "s").why, HasSubstr("a bound is")) << bad;
  }
}

TEST(Scalars, DatesAndArchitectures) {
  EXPECT_TRUE(is_date("2026-02-28"));
  EXPECT_TRUE(is_date("2028-02-29"));
  for (const char* bad : {"2026-02-29", "2026-13-01", "2026-00-10", "26-01-01", "2026/01/01",
                          "2026-1-1", "tomorrow", "2026-01-01T00"}) {
    EXPECT_FALSE(is_date(bad)) << bad;
  }
  for (const char* good : {"sm_80", "sm_90a", "sm_100f", "sm_120a"}) {
    EXPECT_TRUE(is_architecture(good)) << good;
  }
  for (const char* bad :
       {"sm_", "sm90", "SM_90", "sm_9", "sm_1000", "sm_90b", "sm_090", "sm_90aa", "compute_90"}) {
    EXPECT_FALSE(is_architecture(bad)) << bad;
  }
}

}  // namespace
}  // namespace warmgate::scenario
