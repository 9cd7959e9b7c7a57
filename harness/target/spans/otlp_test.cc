// What is read of OTLP, and that no bytes whatever do harm.
#include "harness/target/spans/otlp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "harness/target/spans/otlp_for_test.h"
#include "harness/target/spans/wire_format.h"

namespace warmgate::target {
namespace {

using namespace target::testing;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string full_request() {
  return wire_request(
      {wire_span("Load model", 1000, 5000,
                 wire_bytes(4, "\1\1\1\1\1\1\1\1") + wire_number(6, 1) +
                     wire_attribute(9, "code.function", "load") +
                     wire_exception(4000, "torch.OutOfMemoryError", "no room", "Traceback") +
                     wire_bytes(15, wire_bytes(2, "broke") + wire_number(3, 2))),
       wire_span("Init device", 100, 900)});
}

TEST(OtlpProtobuf, WhatAStartNeedsIsRead) {
  const ReceivedSpans got = read_otlp_protobuf(full_request(), 10);
  ASSERT_THAT(got.spans, SizeIs(2));
  EXPECT_EQ(got.left_out, 0u);
  const ReceivedSpan& load = got.spans[0];
  EXPECT_EQ(load.name, "Load model");
  EXPECT_EQ(load.scope, "engine.module");
  EXPECT_EQ(load.id, "01020304050607ff");
  EXPECT_EQ(load.parent, "0101010101010101");
  EXPECT_EQ(load.begin_wall_ns, 1000);
  EXPECT_EQ(load.end_wall_ns, 5000);
  EXPECT_EQ(load.status, 2);
  EXPECT_EQ(load.status_message, "broke");
  EXPECT_EQ(load.attributes.at("code.function"), "load");
  ASSERT_THAT(load.exceptions, SizeIs(1));
  EXPECT_EQ(load.exceptions[0].wall_ns, 4000);
  EXPECT_EQ(load.exceptions[0].type, "torch.OutOfMemoryError");
  EXPECT_EQ(load.exceptions[0].message, "no room");
  EXPECT_EQ(load.resource->at("their.pid"), "4711");
  EXPECT_EQ(got.spans[1].status, 0);
  EXPECT_EQ(got.spans[1].parent, "");
}

TEST(OtlpProtobuf, ValuesOfEveryScalarFormAreTexts) {
  const auto value = [](const std::string& any) {
    return wire_bytes(9, wire_bytes(1, "k") + wire_bytes(2, any));
  };
  const auto read = [&](const std::string& any) {
    const auto got = read_otlp_protobuf(wire_request({wire_span("s", 1, 2, value(any))}), 1);
    const auto it = got.spans.at(0).attributes.find("k");
    return it == got.spans[0].attributes.end() ? "absent" : it->second;
  };
  EXPECT_EQ(read(wire_number(2, 1)), "true");
  EXPECT_EQ(read(wire_number(3, static_cast<std::uint64_t>(-5))), "-5");
  EXPECT_EQ(read(wire_fixed64(4, 0x3ff8000000000000)), "1.5");
  EXPECT_EQ(read(wire_bytes(5, wire_bytes(1, wire_bytes(1, "in a list")))), "absent");
  EXPECT_EQ(read(""), "absent");
}

TEST(OtlpProtobuf, UnknownFieldsAndFieldsOfAnotherFormArePassedOver) {
  const std::string odd = wire_number(99, 7) + wire_bytes(100, "x") + wire_fixed64(5, 3) +
                          wire_number(7, 12) + wire_bytes(8, "late") + wire_varint(16 << 3 | 5) +
                          std::string(4, '\0');
  const auto got = read_otlp_protobuf(wire_request({odd + wire_span("s", 1, 2)}), 1);
  ASSERT_THAT(got.spans, SizeIs(1));
  EXPECT_EQ(got.spans[0].name, "s");
  EXPECT_EQ(got.spans[0].begin_wall_ns, 1);
  EXPECT_THAT(read_otlp_protobuf("", 1).spans, IsEmpty());
}

TEST(OtlpProtobuf, WhatIsTooMuchIsCountedOrCut) {
  std::vector<std::string> spans(7, wire_span("s", 1, 2));
  const auto got = read_otlp_protobuf(wire_request(spans), 3);
  EXPECT_THAT(got.spans, SizeIs(3));
  EXPECT_EQ(got.left_out, 4u);
  std::string many;
  for (int i = 0; i < 500; ++i) many += wire_attribute(9, "k" + std::to_string(i), "v");
  for (int i = 0; i < 500; ++i) many += wire_exception(1, "T", "m", std::string(1000, 's'));
  const auto wide = read_otlp_protobuf(
      wire_request({wire_span(std::string(9000, 'n') + "\xff\xfe", 1, 2, many)}), 1);
  EXPECT_LE(wide.spans.at(0).name.size(), 260u);
  EXPECT_THAT(wide.spans[0].attributes, SizeIs(kMostAttributes));
  EXPECT_THAT(wide.spans[0].exceptions, SizeIs(kMostExceptions));
}

TEST(OtlpProtobuf, TextsAreLegalAndWithoutSecrets) {
  const auto got = read_otlp_protobuf(
      wire_request(
          {wire_span("a\xff\x01z", 1, 2,
                     wire_exception(1, "T", "GET https://me:hunter2hunter2@h/x", "a\nb"))}),
      1);
  EXPECT_EQ(got.spans.at(0).name.find('\xff'), std::string::npos);
  EXPECT_EQ(got.spans[0].name.find('\x01'), std::string::npos);
  EXPECT_EQ(got.spans[0].exceptions.at(0).message.find("hunter2"), std::string::npos);
  EXPECT_EQ(got.spans[0].exceptions[0].stack, "a\nb");
}

TEST(OtlpProtobuf, CutOffAnywhereItIsRefusedOrShorter) {
  const std::string whole = full_request();
  int refused = 0;
  for (std::size_t size = 0; size < whole.size(); ++size) {
    try {
      EXPECT_THAT(read_otlp_protobuf(whole.substr(0, size), 10).spans, IsEmpty());
    } catch (const OtlpError&) {
      ++refused;
    }
  }
  EXPECT_EQ(refused, static_cast<int>(whole.size()) - 1) << "all but the empty one";
}

TEST(OtlpProtobuf, LengthsThatLieAndFormsThatAreNone) {
  const std::string huge = wire_varint(1 << 3 | 2) + wire_varint(~std::uint64_t{0});
  EXPECT_THROW(read_otlp_protobuf(huge, 1), OtlpError);
  EXPECT_THROW(read_otlp_protobuf(wire_varint(1 << 3 | 3), 1), OtlpError) << "a group";
  EXPECT_THROW(read_otlp_protobuf(wire_varint(1 << 3 | 7), 1), OtlpError);
  EXPECT_THROW(read_otlp_protobuf(wire_varint(2), 1), OtlpError) << "field 0";
  EXPECT_THROW(read_otlp_protobuf(std::string(11, '\xff'), 1), OtlpError);
  std::string deep;
  for (int i = 0; i < 20000; ++i) deep = wire_bytes(5, deep.substr(0, 60000));
  const auto got = read_otlp_protobuf(
      wire_request({wire_span("s", 1, 2, wire_bytes(9, wire_bytes(1, "k") + wire_bytes(2, deep)))}),
      1);
  EXPECT_THAT(got.spans, SizeIs(1)) << "a list within a list within … is not descended into";
}

TEST(OtlpProtobuf, BytesThatWereChangedNeverDoHarm) {
  const std::string whole = full_request();
  std::mt19937 random(7);
  std::size_t read = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = whole;
    for (unsigned k = random() % 4 + 1; k > 0; --k) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    try {
      read += read_otlp_protobuf(bytes, 10).spans.size();
    } catch (const OtlpError&) {
    }
  }
  EXPECT_GT(read, 0u);
}

constexpr const char* kJson = R"({"resourceSpans": [{
  "resource": {"attributes": [{"key": "their.pid", "value": {"intValue": "4711"}}]},
  "scopeSpans": [{"scope": {"name": "m"}, "spans": [{
    "traceId": "5b8efff798038103d269b633813fc60c", "spanId": "EEE19B7EC3C1B174",
    "parentSpanId": "", "name": "Load model", "kind": 1,
    "startTimeUnixNano": "1544712660000000000", "endTimeUnixNano": 1544712661000000000,
    "attributes": [{"key": "b", "value": {"boolValue": true}},
                   {"key": "d", "value": {"doubleValue": 1.5}}],
    "events": [{"timeUnixNano": "1544712660500000000", "name": "exception", "attributes": [
      {"key": "exception.type", "value": {"stringValue": "ValueError"}}]}],
    "status": {"code": 2, "message": "no"}}]}]}]})";

TEST(OtlpJson, TheSameInJson) {
  const ReceivedSpans got = read_otlp_json(kJson, 10);
  ASSERT_THAT(got.spans, SizeIs(1));
  const ReceivedSpan& span = got.spans[0];
  EXPECT_EQ(span.name, "Load model");
  EXPECT_EQ(span.scope, "m");
  EXPECT_EQ(span.id, "eee19b7ec3c1b174");
  EXPECT_EQ(span.parent, "");
  EXPECT_EQ(span.begin_wall_ns, 1544712660000000000);
  EXPECT_EQ(span.end_wall_ns, 1544712661000000000);
  EXPECT_EQ(span.attributes.at("b"), "true");
  EXPECT_EQ(span.attributes.at("d"), "1.5");
  EXPECT_EQ(span.status, 2);
  ASSERT_THAT(span.exceptions, SizeIs(1));
  EXPECT_EQ(span.exceptions[0].type, "ValueError");
  EXPECT_EQ(span.resource->at("their.pid"), "4711");
  EXPECT_EQ(read_otlp_json(kJson, 0).left_out, 1u);
}

TEST(OtlpJson, AMillionNothingsAreReadInOnePass) {
  std::string many = "{\"resourceSpans\":[{}";
  for (int i = 0; i < 1'000'000; ++i) many += ",{}";
  EXPECT_TRUE(read_otlp_json(many + "]}", 100).spans.empty());
  const std::string brackets(40, '[');
  EXPECT_TRUE(read_otlp_json("{\"a\":\"" + brackets + brackets + "\\\"[\"}", 100).spans.empty())
      << "brackets within a text nest nothing";
}

TEST(OtlpJson, WhatIsNoneIsRefusedAndWhatIsOddIsLeftOut) {
  EXPECT_THROW(read_otlp_json("", 1), OtlpError);
  EXPECT_THROW(read_otlp_json("[]", 1), OtlpError);
  EXPECT_THROW(read_otlp_json("{\"resourceSpans\": [", 1), OtlpError);
  EXPECT_THROW(read_otlp_json(std::string(100000, '['), 1), OtlpError);
  EXPECT_THAT(read_otlp_json(R"({"resourceSpans": 5})", 1).spans, IsEmpty());
  const auto odd = read_otlp_json(R"({"resourceSpans": [7, {"scopeSpans": [{"spans": [{"name": 3,
      "spanId": "xyz", "startTimeUnixNano": "12x", "endTimeUnixNano": 1.5e300, "attributes": {},
      "events": [1, {"name": "exception", "attributes": "none"}], "status": []}]}]}]})",
                                  10);
  EXPECT_LE(odd.spans.size(), 1u);
  const std::string whole = kJson;
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_THROW(read_otlp_json(whole.substr(0, size), 1), OtlpError) << size;
  }
}

}  // namespace
}  // namespace warmgate::target
