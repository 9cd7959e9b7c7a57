#include "harness/target/server/prometheus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "harness/target/server/preset.h"
#include "harness/target/test_support.h"

namespace warmgate::target {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Labels = std::map<std::string, std::string>;

MetricName counter(const std::string& theirs, const std::string& ours) {
  return {theirs, ours, "counter", ""};
}

MetricDelta delta(const std::string& before, const std::string& after, const MetricName& name) {
  const auto all = compare_metrics(parse_prometheus(before), parse_prometheus(after), {name});
  EXPECT_EQ(all.size(), 1u);
  return all.at(0);
}

TEST(Prometheus, ReadsWhatServersWrite) {
  const Metrics m = parse_prometheus(
      "# HELP vllm:num_requests_running Number of requests.\n"
      "# TYPE vllm:num_requests_running gauge\n"
      "vllm:num_requests_running{engine=\"0\",model_name=\"a/b\"} 2.0\r\n"
      "vllm:num_requests_running{engine=\"1\",model_name=\"a/b\",} 3\n"
      "\n"
      "  tgi_queue_size 1e3 1700000000000\n"
      "process_start_time_seconds +1.7e+09");
  ASSERT_EQ(m.samples.size(), 4u);
  EXPECT_EQ(m.samples[0].name, "vllm:num_requests_running");
  EXPECT_EQ(m.samples[0].labels, (Labels{{"engine", "0"}, {"model_name", "a/b"}}));
  EXPECT_EQ(m.samples[1].value, 3);
  EXPECT_EQ(m.samples[2].value, 1000);
  EXPECT_EQ(m.samples[3].value, 1.7e9);
  EXPECT_EQ(m.types.at("vllm:num_requests_running"), "gauge");
  EXPECT_EQ(m.garbage_lines, 0u);
  EXPECT_EQ(m.find("vllm:num_requests_running").size(), 2u);
}

TEST(Prometheus, EscapesInLabels) {
  const Metrics m =
      parse_prometheus(R"(a{x="q\"q",y="b\\b",z="n\nn",w="\d",v="}, {=",u="a b # c"} 1)"
                       "\n");
  ASSERT_EQ(m.samples.size(), 1u);
  EXPECT_EQ(m.samples[0].labels, (Labels{{"x", "q\"q"},
                                         {"y", "b\\b"},
                                         {"z", "n\nn"},
                                         {"w", "\\d"},
                                         {"v", "}, {="},
                                         {"u", "a b # c"}}));
}

TEST(Prometheus, NumbersThatAreNone) {
  const Metrics m = parse_prometheus("a NaN\nb +Inf\nc -Inf\nd 1e999\ne 1e-999\nf -0\n");
  ASSERT_EQ(m.samples.size(), 6u);
  EXPECT_TRUE(std::isnan(m.samples[0].value));
  EXPECT_EQ(m.samples[1].value, HUGE_VAL);
  EXPECT_EQ(m.samples[2].value, -HUGE_VAL);
  EXPECT_EQ(m.samples[3].value, HUGE_VAL);
  EXPECT_EQ(m.samples[4].value, 0);
}

TEST(Prometheus, HistogramsExemplarsAndOpenMetrics) {
  const Metrics m = parse_prometheus(
      "# TYPE t_seconds histogram\n"
      "t_seconds_bucket{le=\"0.1\"} 8 # {trace_id=\"abc\"} 0.067 1700000000.1\n"
      "t_seconds_bucket{le=\"+Inf\"} 9 1700000000.5 # {} 1\n"
      "t_seconds_sum 0.5\n"
      "t_seconds_count 9\n"
      "{\"my.metric\",unit=\"s\"} 4\n"
      "{\"other metric\"} 5\n"
      "# EOF\n");
  EXPECT_EQ(m.garbage_lines, 0u) << m.garbage.at(0);
  ASSERT_EQ(m.samples.size(), 6u);
  EXPECT_EQ(m.samples[1].labels.at("le"), "+Inf");
  EXPECT_EQ(m.samples[4].name, "my.metric");
  EXPECT_EQ(m.samples[4].labels, (Labels{{"unit", "s"}}));
}

TEST(Prometheus, GarbageIsKeptAndCounted) {
  const std::string bad[] = {"a",           "a{",         "a{b}",         "a{b=c} 1", "a{b=\"c} 1",
                             "a{b=\"c\" 1", "1a 2",       "a one",        "a 1 2 3",  "a{} 1 x",
                             "{} 1",        "a{\"b\"} 1", "<html> 404",   "a{b=\"\\", "a 0x10",
                             "a{=\"\"} 1",  "a 1,5",      "a{b=\"c\";} 1"};
  for (const std::string& line : bad) {
    const Metrics m = parse_prometheus("good 1\n" + line + "\nbetter 2\n");
    EXPECT_EQ(m.garbage_lines, 1u) << line;
    EXPECT_THAT(m.garbage, ElementsAre(line));
    EXPECT_EQ(m.samples.size(), 2u) << line;
  }
  std::string many;
  for (int i = 0; i < 1000; ++i) many += std::string(1000, '!') + "\n";
  const Metrics m = parse_prometheus(many);
  EXPECT_EQ(m.garbage_lines, 1000u);
  EXPECT_EQ(m.garbage.size(), Metrics::kMaxGarbage);
  EXPECT_EQ(m.garbage[0].size(), 200u);
}

TEST(Prometheus, DuplicatesAreCountedAndTheFirstCounts) {
  const Metrics m = parse_prometheus("a{x=\"1\",y=\"2\"} 1\na{y=\"2\",x=\"1\"} 5\na{x=\"1\"} 7\n");
  EXPECT_EQ(m.duplicates, 1u);
  ASSERT_EQ(m.samples.size(), 2u);
  EXPECT_EQ(m.samples[0].value, 1);
}

TEST(Prometheus, TooManySamplesAreCut) {
  std::string text;
  for (std::size_t i = 0; i < Metrics::kMaxSamples + 5; ++i)
    text += "a" + std::to_string(i) + " 1\n";
  const Metrics m = parse_prometheus(text);
  EXPECT_TRUE(m.cut);
  EXPECT_EQ(m.samples.size(), Metrics::kMaxSamples);
}

TEST(Prometheus, NothingIsNoMetrics) {
  EXPECT_THAT(parse_prometheus("").samples, IsEmpty());
  EXPECT_THAT(parse_prometheus(std::string("\0\0\n\xff\n", 5)).samples, IsEmpty());
}

TEST(MetricsJson, TheLastIterationTheSumsAndTheCount) {
  const Metrics m = parse_metrics_json(
      R"([{"iter":1,"kv":{"used":3},"spec":{"drafts":2}},
          {"iter":2,"kv":{"used":4},"spec":{"drafts":5},"on":true,"name":"x","list":[7,8]}])");
  std::map<std::string, double> seen;
  for (const MetricSample& each : m.samples) seen[each.name] = each.value;
  EXPECT_EQ(seen.at("/iter"), 2);
  EXPECT_EQ(seen.at("/kv/used"), 4);
  EXPECT_EQ(seen.at("/sum/spec/drafts"), 7);
  EXPECT_EQ(seen.at("/on"), 1);
  EXPECT_EQ(seen.at("/list/1"), 8);
  EXPECT_EQ(seen.at("/iterations"), 2);
  EXPECT_EQ(seen.count("/name"), 0u);
}

// Each reading takes away what it gives: the second one holds the work in between.
TEST(MetricsJson, IterationsOfTensorRtUnderOurNames) {
  const ServerPreset preset = load_preset(testing::source("fixtures/servers/trtllm.yaml"));
  ASSERT_EQ(preset.more_metrics.path, "/metrics");
  ASSERT_EQ(preset.more_metrics.kind, "json");
  const auto read = [&](const std::string& text) {
    return both({}, parse_metrics(preset.more_metrics.kind, text));
  };
  const auto before = read(R"([{"iter":7,"kvCacheStats":{"maxNumBlocks":101256},
      "specDecodingStats":{"numDraftTokens":30,"numAcceptedTokens":9}}])");
  const auto after = read(R"([
      {"iter":8,"kvCacheStats":{"maxNumBlocks":101256,"usedNumBlocks":3},
       "specDecodingStats":{"numDraftTokens":3,"numAcceptedTokens":1}},
      {"iter":9,"kvCacheStats":{"maxNumBlocks":101256,"usedNumBlocks":4},
       "specDecodingStats":{"numDraftTokens":3,"numAcceptedTokens":2}}])");
  std::map<std::string, double> seen;
  for (const MetricDelta& each : compare_metrics(before, after, preset.metric_names))
    if (each.value) seen[each.figure] = *each.value;
  EXPECT_EQ(seen, (std::map<std::string, double>{
                      {"accepted_tokens", 3}, {"draft_tokens", 6}, {"kv_blocks", 101256}}));
  // Where the counters are exposed, they are what counts.
  const auto counters = [](int n) {
    return parse_prometheus("trtllm_spec_decode_num_draft_tokens_total " + std::to_string(n) +
                            "\n");
  };
  for (const MetricDelta& each : compare_metrics(both(counters(10), before),
                                                 both(counters(16), after), preset.metric_names)) {
    if (each.figure != "draft_tokens") continue;
    EXPECT_EQ(each.metric, "trtllm_spec_decode_num_draft_tokens_total");
    EXPECT_EQ(each.value, 6);
  }
}

TEST(MetricsJson, ObjectsEmptyListsAndGarbage) {
  EXPECT_EQ(parse_metrics_json(R"({"a":{"b":1.5}})").find("/a/b").size(), 1u);
  const Metrics empty = parse_metrics_json("[]");
  ASSERT_EQ(empty.samples.size(), 1u);
  EXPECT_EQ(empty.samples[0].name, "/iterations");
  for (const char* text : {"", "nothing", "[1,", "3", "null", "<html>"}) {
    const Metrics m = parse_metrics_json(text);
    EXPECT_EQ(m.garbage_lines, 1u) << text;
    EXPECT_THAT(m.samples, IsEmpty()) << text;
  }
  parse_metrics_json(std::string(100000, '['));
  EXPECT_EQ(parse_metrics_json("[1, \"a\", null]").find("/iterations").size(), 1u);
}

TEST(MetricDelta, CountersAreSummedOverTheirLabels) {
  const auto d = delta("d_total{e=\"0\"} 2\nd_total{e=\"1\"} 3\n",
                       "d_total{e=\"1\"} 10\nd_total{e=\"0\"} 4\n", counter("d_total", "drafts"));
  EXPECT_EQ(d.value, 9);
  EXPECT_EQ(d.before, 5);
  EXPECT_EQ(d.after, 14);
  EXPECT_EQ(d.note, "");
}

TEST(MetricDelta, NothingCountedIsZeroAndNothingSeenIsNot) {
  const MetricName name = counter("d_total", "drafts");
  EXPECT_EQ(delta("d_total 5\n", "d_total 5\n", name).value, 0);
  const auto missing = delta("x 1\n", "x 1\n", name);
  EXPECT_FALSE(missing.value.has_value());
  EXPECT_EQ(missing.note, "not exposed");
  const auto gone = delta("d_total 5\n", "x 1\n", name);
  EXPECT_FALSE(gone.value.has_value());
  EXPECT_THAT(gone.note, HasSubstr("no longer"));
  const auto part = delta("d_total{a=\"1\"} 5\nd_total{a=\"2\"} 5\n", "d_total{a=\"1\"} 6\n", name);
  EXPECT_FALSE(part.value.has_value());
}

TEST(MetricDelta, AResetIsSaidSeriesBySeries) {
  const auto d = delta("d_total{e=\"0\"} 9\nd_total{e=\"1\"} 1\n",
                       "d_total{e=\"0\"} 2\nd_total{e=\"1\"} 90\n", counter("d_total", "drafts"));
  EXPECT_FALSE(d.value.has_value());
  EXPECT_THAT(d.note, HasSubstr("reset: 9, then 2"));
}

TEST(MetricDelta, ACounterThatAppearsCountsFromThere) {
  const auto d = delta("d_total{e=\"0\"} 1\n", "d_total{e=\"0\"} 2\nd_total{e=\"1\"} 3\n",
                       counter("d_total", "drafts"));
  EXPECT_EQ(d.value, 4);
  EXPECT_THAT(d.note, HasSubstr("appeared"));
}

TEST(MetricDelta, NotANumberIsNotObserved) {
  const MetricName name = counter("d_total", "drafts");
  EXPECT_FALSE(delta("d_total 1\n", "d_total NaN\n", name).value.has_value());
  EXPECT_FALSE(delta("d_total 1\n", "d_total +Inf\n", name).value.has_value());
  EXPECT_FALSE(delta("g 1\n", "g NaN\n", {"g", "kv_blocks", "gauge", ""}).value.has_value());
}

TEST(MetricDelta, HistogramsGiveTheMeanOfWhatWasAdded) {
  const MetricName name{"itl_seconds", "inter_token_ms", "histogram", ""};
  const auto d = delta("itl_seconds_sum 1\nitl_seconds_count 10\n",
                       "itl_seconds_sum 4\nitl_seconds_count 40\n", name);
  ASSERT_TRUE(d.value.has_value());
  EXPECT_DOUBLE_EQ(*d.value, 100);
  const auto none = delta("itl_seconds_sum 1\nitl_seconds_count 10\n",
                          "itl_seconds_sum 1\nitl_seconds_count 10\n", name);
  EXPECT_FALSE(none.value.has_value());
  EXPECT_THAT(none.note, HasSubstr("nothing was added"));
  EXPECT_EQ(delta("", "", name).note, "not exposed");
}

TEST(MetricDelta, GaugesAndLabels) {
  const std::string after =
      "g 7\ncache_config_info{num_gpu_blocks=\"1234\",block_size=\"16\",x=\"None\"} 1\n";
  EXPECT_EQ(delta("g 1\n", after, {"g", "kv_blocks", "gauge", ""}).value, 7);
  EXPECT_EQ(delta("", after, {"cache_config_info", "kv_blocks", "label", "num_gpu_blocks"}).value,
            1234);
  EXPECT_FALSE(
      delta("", after, {"cache_config_info", "kv_blocks", "label", "x"}).value.has_value());
  EXPECT_FALSE(
      delta("", after, {"cache_config_info", "kv_blocks", "label", "none"}).value.has_value());
}

TEST(MetricDelta, TheNameOfTheVersionThatIsThereCounts) {
  const std::vector<MetricName> names = {counter("new_total", "drafts"),
                                         counter("old_total", "drafts"),
                                         counter("tokens_total", "draft_tokens")};
  const auto d =
      compare_metrics(parse_prometheus("old_total 1\n"), parse_prometheus("old_total 4\n"), names);
  ASSERT_EQ(d.size(), 2u);
  EXPECT_EQ(d[0].value, 3);
  EXPECT_EQ(d[0].metric, "old_total");
  EXPECT_EQ(d[1].figure, "draft_tokens");
  EXPECT_FALSE(d[1].value.has_value());
}

TEST(MetricDelta, WithoutAReadingNothingIsObserved) {
  const std::vector<MetricName> names = {counter("a_total", "drafts"),
                                         {"g", "kv_blocks", "gauge", ""}};
  const Metrics some = parse_prometheus("a_total 5\ng 3\n");
  const auto no_after = compare_metrics(some, std::nullopt, names);
  EXPECT_FALSE(no_after[0].value.has_value());
  EXPECT_FALSE(no_after[1].value.has_value());
  const auto no_before = compare_metrics(std::nullopt, some, names);
  EXPECT_FALSE(no_before[0].value.has_value());
  EXPECT_THAT(no_before[0].note, HasSubstr("before"));
  EXPECT_EQ(no_before[1].value, 3);
}

TEST(MetricDelta, EventsOnlyOfWhatWasObserved) {
  const auto deltas =
      compare_metrics(parse_prometheus("a_total 5\n"), parse_prometheus("a_total 7\n"),
                      {counter("a_total", "drafts"), counter("b_total", "draft_tokens")});
  const auto events = metric_events(deltas, 42);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].ev, "counter");
  EXPECT_EQ(events[0].t_ns, 42);
  EXPECT_EQ(events[0].str("name"), "drafts");
  EXPECT_EQ(events[0].real("value"), 2);
  EXPECT_EQ(events[0].real("delta"), 2);
  EXPECT_EQ(events[0].real("before"), 5);
  EXPECT_EQ(events[0].src, "http");
  trace::parse_event(trace::to_line(events[0]));  // a legal line
}

}  // namespace
}  // namespace warmgate::target
