#include "reports/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "reports/sample_report.h"
#include "reports/schema_check.h"

namespace warmgate::reports {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

nlohmann::json schema() {
  return nlohmann::json::parse(slurp(golden_path("../report.schema.json")));
}

TEST(Json, Golden) { expect_golden("report.json", json_text(sample_report().report)); }

TEST(Json, ConformsToItsSchema) {
  SchemaCheck check(schema());
  EXPECT_THAT(check.problems(nlohmann::json::parse(json_text(sample_report().report))), IsEmpty());
  EXPECT_THAT(check.problems(nlohmann::json::parse(json_text(hostile_report().report))), IsEmpty());
  EXPECT_THAT(check.problems(nlohmann::json::parse(json_text(Report{}))), IsEmpty());
}

TEST(Json, TheSchemaCanRefuse) {
  SchemaCheck check(schema());
  nlohmann::json report = nlohmann::json::parse(json_text(sample_report().report));
  nlohmann::json broken = report;
  broken["schema"] = "report/2.0";
  EXPECT_THAT(check.problems(broken), Not(IsEmpty()));
  broken = report;
  broken["scenarios"][0]["variants"][0]["runs"][0]["outcome"] = "fine";
  EXPECT_THAT(check.problems(broken), Not(IsEmpty()));
  broken = report;
  broken["scenarios"][0]["variants"][0]["runs"][0].erase("figures");
  EXPECT_THAT(check.problems(broken), Not(IsEmpty()));
  broken = report;
  broken["surprise"] = 1;
  EXPECT_THAT(check.problems(broken), Not(IsEmpty()));
}

TEST(Json, BeginsWithItsSchema) {
  EXPECT_EQ(json_report(sample_report().report).begin().key(), "schema");
}

TEST(Json, CarriesTheProof) {
  const auto report = json_report(sample_report().report);
  const auto& run = report["scenarios"][0]["variants"][0]["runs"][0];
  const auto& finding = run["contracts"][1]["findings"][0];
  EXPECT_EQ(finding["proof"], nlohmann::ordered_json({0}));
  ASSERT_EQ(run["events"].size(), 1u);
  EXPECT_EQ(run["events"][0]["index"], 0);
  EXPECT_EQ(run["events"][0]["ev"], "requires");
  EXPECT_EQ(run["events"][0]["body"]["layer"], 43);
  EXPECT_EQ(run["events"][0]["line"], 57);
  EXPECT_EQ(run["fingerprint"]["id"].get<std::string>().size(), 12u);
}

TEST(Json, AnEventIndexOutsideTheTraceIsLeftOut) {
  Sample s = sample_report();
  s.runs[0].contracts[1].findings[0].events = {0, 99};
  const auto report = json_report(s.report);
  EXPECT_EQ(report["scenarios"][0]["variants"][0]["runs"][0]["contracts"][1]["findings"][0]["proof"]
                .size(),
            1u);
}

TEST(Json, HostileTextIsLegalJson) {
  const std::string text = json_text(hostile_report().report);
  EXPECT_TRUE(nlohmann::json::accept(text));
  EXPECT_THAT(text, Not(HasSubstr("hunter2")));
  EXPECT_THAT(text, HasSubstr("[secret]"));
  for (const char c : text) EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 || c == '\n');
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    const std::size_t first = line.find_first_not_of(' ');
    if (first != std::string::npos) {
      EXPECT_NE(line.compare(first, 2, "::"), 0);
    }
  }
}

TEST(Json, WhatIsNoNumberIsNull) {
  Sample s = sample_report();
  s.runs[1].figures["kv_tokens"] = std::nan("");
  s.report.wall_s = INFINITY;
  const auto report = json_report(s.report);
  EXPECT_TRUE(report["wall_s"].is_null());
  EXPECT_TRUE(report["scenarios"][0]["variants"][1]["runs"][0]["figures"]["kv_tokens"].is_null());
  EXPECT_TRUE(nlohmann::json::accept(json_text(s.report)));
}

}  // namespace
}  // namespace warmgate::reports
