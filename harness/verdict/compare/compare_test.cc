#include "harness/verdict/compare/compare.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "harness/verdict/test_run.h"

namespace warmgate::verdict {
namespace {

using namespace testing;
using contract::State;
namespace fs = std::filesystem;

TEST(CapacityEqual, InBytesNotTokens) {
  RunRecord a = run(Outcome::kPassed, "A"), b = run(Outcome::kPassed, "B");
  EXPECT_EQ(capacity_equal(a, b).state, State::kNotObserved);
  a.figures = {{"kv_bytes", 100}, {"kv_tokens", 5}};
  b.figures = {{"kv_bytes", 100}, {"kv_tokens", 9}};
  const contract::Result half = capacity_equal(a, b);
  EXPECT_EQ(half.state, State::kKept);
  EXPECT_NE(half.why.find("block_stride_bytes"), std::string::npos);
  b.figures["kv_bytes"] = 99;
  const contract::Result result = capacity_equal(a, b);
  ASSERT_EQ(result.state, State::kBroken);
  EXPECT_EQ(result.findings[0].key, "kv_bytes");
  EXPECT_EQ(result.findings[0].detail["difference_bytes"], -1);
  EXPECT_EQ(result.findings[0].message, "kv_bytes of A is 100 B, of B 99 B");
  EXPECT_EQ(capacity_equal(a, b, {"workspace_bytes"}).state, State::kNotObserved);
}

TEST(SetGrowth, OnlyWhatIsNew) {
  RunRecord a = run(Outcome::kPassed, "A"), b = run(Outcome::kPassed, "B");
  EXPECT_EQ(set_growth(a, b).state, State::kNotObserved);
  a.sets = {{"kernels", {"x", "y"}}, {"skips", {}}};
  b.sets = {{"kernels", {"y"}}, {"skips", {}}};
  const contract::Result shrunk = set_growth(a, b);  // fewer is no growth
  EXPECT_EQ(shrunk.state, State::kKept);
  EXPECT_NE(shrunk.why.find("compiles_after_ready, warnings"), std::string::npos);
  b.sets["kernels"] = {"y", "z"};
  b.sets["skips"] = {"mhc"};
  const contract::Result grown = set_growth(a, b);
  ASSERT_EQ(grown.findings.size(), 2u);
  EXPECT_EQ(grown.findings[0].key, "skips/mhc");
  EXPECT_EQ(grown.findings[1].key, "kernels/z");
  AcceptedVariant accepted;
  accepted.sets = {{"kernels", {"y", "z"}}, {"skips", {"mhc"}}};
  EXPECT_EQ(set_growth(accepted, b).state, State::kKept);
}

class AcceptedFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "wg-accepted-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    dir_ = name;
    file_ = dir_ / "s.accepted.json";
  }
  void TearDown() override { fs::remove_all(dir_); }
  std::string error(const std::string& text) {
    std::ofstream(file_, std::ios::trunc) << text;
    try {
      (void)read_accepted(file_);
    } catch (const std::runtime_error& e) {
      EXPECT_NE(std::string(e.what()).find("s.accepted.json"), std::string::npos);
      return e.what();
    }
    return "";
  }
  fs::path dir_, file_;
};

TEST_F(AcceptedFile, RoundTrip) {
  RunRecord a = run(Outcome::kPassed, "A[tp=2]"), again = a, infra = run(Outcome::kInfra, "X");
  a.sets["compiles_after_ready"] = {"K{A=1}"};
  again.sets["compiles_after_ready"] = {"K{A=2}"};
  again.figures = {{"kv_tokens", 9222468},
                   {"concurrency", 8.7952},
                   {"time_to_ready_s", 3},
                   {"peak_rss_bytes", 1},
                   {"my_metric", 2}};
  const Accepted made = make_accepted({&a, &again, &infra});
  write_accepted(file_, made);
  const Accepted read = read_accepted(file_);
  EXPECT_EQ(read.scenario, "s");
  ASSERT_EQ(read.variants.size(), 1u);
  const AcceptedVariant* v = read.find("A[tp=2]");
  ASSERT_NE(v, nullptr);
  EXPECT_EQ(v->sets.at("compiles_after_ready").size(), 2u);  // repeats are united
  EXPECT_EQ(v->counts,
            (std::map<std::string, double>{{"kv_tokens", 9222468}, {"concurrency", 8.7952}}));
  EXPECT_EQ(read.find("B"), nullptr);
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_), {}), 1);  // nothing left beside it
}

TEST_F(AcceptedFile, BaseNameIsTheFallback) {
  Accepted accepted;
  accepted.variants["A"];
  EXPECT_NE(accepted.find("A[tp=4]"), nullptr);
  EXPECT_EQ(accepted.find("AB"), nullptr);
}

TEST_F(AcceptedFile, AbsentIsEmptyBrokenIsRefused) {
  EXPECT_TRUE(read_accepted(dir_ / "none.json").variants.empty());
  EXPECT_NE(error("").find("not a JSON object"), std::string::npos);
  EXPECT_NE(error("[]").find("not a JSON object"), std::string::npos);
  EXPECT_NE(error("{}").find("schema"), std::string::npos);
  EXPECT_NE(error("{\"schema\":\"report/1.0\"}").find("report/1.0"), std::string::npos);
  EXPECT_NE(error("{\"schema\":\"accepted/2.0\",\"variants\":{}}").find("newer"),
            std::string::npos);
  EXPECT_NE(error("{\"schema\":\"accepted/10.0\",\"variants\":{}}").find("newer"),
            std::string::npos);
  EXPECT_NE(error("{\"schema\":\"accepted/1.0\"}").find("variants"), std::string::npos);
  EXPECT_NE(error("{\"schema\":\"accepted/1.0\",\"variants\":{\"A\":3}}").find("A"),
            std::string::npos);
  // A higher minor with unknown fields, and members of wrong types, are read past.
  EXPECT_EQ(error("{\"schema\":\"accepted/1.7\",\"new\":1,\"variants\":{\"A\":{\"sets\":"
                  "{\"x\":[1,\"k\"],\"y\":2},\"counts\":{\"n\":\"m\"},\"z\":0}}}"),
            "");
  EXPECT_EQ(read_accepted(file_).find("A")->sets.at("x"), std::set<std::string>{"k"});
}

TEST_F(AcceptedFile, CannotBeWritten) {
  EXPECT_THROW(write_accepted(dir_ / "no" / "such.json", {}), std::runtime_error);
}

}  // namespace
}  // namespace warmgate::verdict
