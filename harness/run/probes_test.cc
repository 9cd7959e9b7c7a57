// Probe values from reports, and manifests held against them.
#include "harness/run/probes.h"

#include <gmock/gmock.h>

#include <fstream>

#include "harness/run/json_text.h"
#include "harness/run/manifest.h"
#include "harness/run/run_dir.h"
#include "harness/scenario/scenario.h"

namespace warmgate::run {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::Contains;
using ::testing::HasSubstr;

json report_with(const std::vector<double>& health, const std::string& variant = "B") {
  json runs = json::array();
  for (const double seconds : health)
    runs.push_back(
        {{"outcome", "passed"},
         {"figures", {{"time_to_ready_s", seconds + 1}}},
         {"evidence", {{"clocks_s", {{"health", seconds}}}, {"phases_s", {{"shutdown", 3}}}}}});
  runs.push_back({{"outcome", "crashed"}, {"figures", {{"time_to_ready_s", 9999}}}});
  return {{"schema", "report/1.1"},
          {"scenarios", {{{"name", "s"}, {"variants", {{{"name", variant}, {"runs", runs}}}}}}}};
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const scenario::ScenarioError& error) {
    return error.problems().front().text();
  }
  return "";
}

class Probes : public ::testing::Test {
 protected:
  fs::path write(const std::string& name, const std::string& text) {
    write_whole(dir_.path() / name, text);
    return dir_.path() / name;
  }
  RunDir dir_{"test"};
};

TEST(Quantile, SaysWhatSoFewCannot) {
  const Quantile one = quantile({5});
  EXPECT_EQ(one.p99, 5);
  EXPECT_TRUE(one.is_worst);
  EXPECT_NEAR(one.unseen, 0.95, 1e-9);
  std::vector<double> many;
  for (int i = 1; i <= 200; ++i) many.push_back(i);
  const Quantile q = quantile(many);
  EXPECT_FALSE(q.is_worst);
  EXPECT_EQ(q.p99, 198);
  EXPECT_EQ(q.worst, 200);
  EXPECT_LE(1 - std::pow(0.05, 1.0 / kStartsForP99), 0.01);
  EXPECT_GT(1 - std::pow(0.05, 1.0 / (kStartsForP99 - 1)), 0.01);
  EXPECT_EQ(quantile({}).n, 0u);
}

TEST_F(Probes, AReportThatIsGivenTwiceCountsOnce) {
  const std::string text = report_with({80, 90}).dump();
  const fs::path a = write("a.json", text), copy = write("copy.json", text);
  const fs::path other = write("other.json", report_with({85}).dump());
  write("kept/report.json", text);
  fs::create_symlink(a, dir_.path() / "link.json");
  const MeasuredStarts starts = read_starts({a, a, copy, other, dir_.path() / "kept",
                                             dir_.path() / "link.json", dir_.path() / "./a.json"},
                                            "");
  EXPECT_EQ(starts.passed, 3u);
  EXPECT_EQ(starts.clocks.at("health").size(), 3u);
  ASSERT_EQ(starts.repeated.size(), 5u);
  const ProbeValues values = probe_values(starts);
  EXPECT_THAT(values.notes, Contains(HasSubstr("copy.json is the same report as " + a.string())));
  EXPECT_THAT(values.notes, Contains(HasSubstr("n = 3")));
}

// Where, what and what it should be; a budget is not guessed from what a manifest may have meant.
TEST_F(Probes, SlipsInAManifestAreNamed) {
  const std::string good =
      "apiVersion: apps/v1\n"
      "kind: Deployment\n"
      "spec:\n"
      "  progressDeadlineSeconds: 900\n"
      "  template:\n"
      "    spec:\n"
      "      terminationGracePeriodSeconds: 60\n"
      "      containers:\n"
      "        - name: vllm\n"
      "          image: x\n"
      "          startupProbe:\n"
      "            httpGet: {path: /health, port: 8000}\n"
      "            failureThreshold: 30\n"
      "            periodSeconds: 10\n";
  const fs::path file = dir_.path() / "m.yaml";
  write("m.yaml", good);
  ASSERT_EQ(read_manifest(file).size(), 1u);
  struct Slip {
    std::string from, to, where, says;
  };
  for (const auto& [from, to, where, says] : std::vector<Slip>{
           {"Threshold: 30", "Threshold: \"30\"", ":13:31: ", "text '30'"},
           {"Seconds: 60", "Seconds: '60'", ":7:", "terminationGracePeriodSeconds"},
           {"Seconds: 900", "Seconds: '900'", ":4:", "progressDeadlineSeconds"},
           {"failureThreshold", "failureTreshold", ":13:13: ", "did you mean failureThreshold"},
           {"periodSeconds", "period", ":14:13: ", "'period': no field of startupProbe"},
           {"startupProbe", "startUpProbe", ":11:11: ", "did you mean startupProbe"},
           {"progressDeadlineSeconds", "progressDeadlineSecond", ":4:3: ", "did you mean"},
           {"terminationGracePeriodSeconds", "terminationGraceperiodSeconds", ":7:7: ", "did you"},
           {"Deployment", "Deploymnet", ":2:7: ", "did you mean Deployment"},
           {"Deployment", "Service", ":2:7: ", "known are"}}) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    write("m.yaml", text);
    const std::string error = error_of([&] { read_manifest(file); });
    EXPECT_THAT(error, HasSubstr("m.yaml" + where)) << to;
    EXPECT_THAT(error, HasSubstr(says)) << to;
  }
  // Somebody's own kind is none of ours, and fields come with new versions.
  std::string custom = good;
  custom.replace(custom.find("apps/v1"), 7, "ai.example/v1");
  custom.replace(custom.find("Deployment"), 10, "Deploymint");
  custom.replace(custom.find("image: x"), 8, "newField: x");
  write("m.yaml", custom);
  EXPECT_EQ(read_manifest(file).size(), 1u);
}

TEST_F(Probes, FromTheSlowestOfAFew) {
  const fs::path a = write("a.json", report_with({90, 100}).dump());
  write("kept/report.json", report_with({80}).dump());
  const MeasuredStarts starts = read_starts({a, dir_.path() / "kept"}, "");
  EXPECT_EQ(starts.passed, 3u);
  EXPECT_EQ(starts.others, 2u);
  const ProbeValues values = probe_values(starts);
  EXPECT_EQ(values.clock, "health");
  EXPECT_EQ(values.ready.p99, 100);
  EXPECT_EQ(values.headroom, 2);
  EXPECT_EQ(values.period_s, 10);
  EXPECT_EQ(values.failure_threshold, 20);
  EXPECT_TRUE(values.grace_measured);
  EXPECT_EQ(values.grace_s, 30);
  EXPECT_THAT(values.notes, Contains(HasSubstr("n = 3")));
  EXPECT_THAT(values.notes, Contains(HasSubstr("2 runs did not pass")));
  EXPECT_THAT(probe_yaml(values), HasSubstr("failureThreshold: 20"));
}

TEST_F(Probes, ReportsThatSayNothing) {
  const auto read = [&](const std::string& text, const std::string& variant = "") {
    const fs::path file = write("x.json", text);
    return error_of([&] { read_starts({file}, variant); });
  };
  EXPECT_THAT(read("no json"), HasSubstr("is not JSON"));
  EXPECT_THAT(read("{\"schema\":\"report/2.0\",\"scenarios\":[]}"), HasSubstr("report/2.0"));
  EXPECT_THAT(read("{\"schema\":7,\"scenarios\":[]}"), HasSubstr("schema is 7"));
  EXPECT_THAT(read("{\"schema\":\"report/1.1\"}"), HasSubstr("no scenarios"));
  EXPECT_THAT(error_of([&] { read_starts({dir_.path() / "none"}, ""); }), HasSubstr("no such"));
  json two = report_with({1});
  two["scenarios"][0]["variants"].push_back({{"name", "A"}, {"runs", json::array()}});
  EXPECT_THAT(read(two.dump()), HasSubstr("--variant"));
  EXPECT_EQ(read(two.dump(), "B"), "");
  EXPECT_THAT(read(two.dump(), "C"), HasSubstr("no variant C"));
  // Whatever stands in a field, it is a number or it is not there.
  json odd = report_with({1});
  odd["scenarios"][0]["variants"][0]["runs"][0] = {
      {"outcome", "passed"},
      {"figures", 3},
      {"evidence", {{"clocks_s", {{"health", "soon"}, {"port", -1}}}}}};
  const fs::path file = write("odd.json", odd.dump());
  EXPECT_THROW(probe_values(read_starts({file}, "")), std::runtime_error);
}

const char* kManifest =
    "apiVersion: v1\nkind: Service\nmetadata: {name: x}\nspec: {ports: [{port: 80}]}\n---\n"
    "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: vllm\nspec:\n  template:\n    "
    "spec:\n"
    "      containers:\n        - name: vllm\n          startupProbe:\n"
    "            httpGet: {path: /health, port: 8000}\n            failureThreshold: 6\n"
    "            periodSeconds: 10\n        - name: sidecar\n";

TEST_F(Probes, ABudgetThatIsTooShortIsNamed) {
  const fs::path file = write("deployment.yaml", kManifest);
  const std::vector<Pod> pods = read_manifest(file);
  ASSERT_EQ(pods.size(), 1u);
  EXPECT_EQ(pods[0].name, "vllm");
  ASSERT_EQ(pods[0].containers.size(), 2u);
  EXPECT_EQ(pods[0].containers[0].startup.line, 15);
  ProbeValues values;
  values.clock = "health";
  values.ready = quantile({61});
  std::vector<ManifestFinding> found = check_manifest(file, pods, values, "");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].state, ManifestFinding::State::kTooShort);
  EXPECT_EQ(found[0].where, file.string() + ":15");
  EXPECT_THAT(found[0].text, HasSubstr("allows 60 s (0 + 6 x 10)"));
  values.ready = quantile({60});
  found = check_manifest(file, pods, values, "");
  EXPECT_EQ(found[0].state, ManifestFinding::State::kOk);
  EXPECT_THAT(found[1].text, HasSubstr("less than one period"));
  EXPECT_THAT(error_of([&] { check_manifest(file, pods, values, "no"); }),
              HasSubstr("no container no"));
}

TEST_F(Probes, WhereAPodMayStand) {
  const fs::path file = write(
      "list.yaml",
      "kind: List\nitems:\n- kind: CronJob\n  metadata: {name: job}\n  spec:\n    jobTemplate:\n"
      "      spec:\n        template:\n          spec:\n            terminationGracePeriodSeconds: "
      "5\n"
      "            containers: [{name: a, livenessProbe: {initialDelaySeconds: 30}}]\n"
      "- kind: Pod\n  metadata: {name: p}\n  spec:\n    containers: [{name: b, startupProbe: "
      "{}}]\n");
  const std::vector<Pod> pods = read_manifest(file);
  ASSERT_EQ(pods.size(), 2u);
  EXPECT_EQ(pods[0].kind, "CronJob");
  EXPECT_EQ(pods[0].containers[0].liveness.budget_s(), 60);
  EXPECT_EQ(*pods[0].grace_s, 5);
  EXPECT_EQ(pods[1].containers[0].startup.budget_s(), 30);
  ProbeValues values;
  values.ready = quantile({1});
  EXPECT_THAT(error_of([&] { check_manifest(file, pods, values, ""); }), HasSubstr("--container"));
  EXPECT_EQ(check_manifest(file, pods, values, "b").size(), 1u);
}

TEST_F(Probes, HostileManifests) {
  const auto read = [&](const std::string& text) {
    const fs::path file = write("m.yaml", text);
    return error_of([&] { read_manifest(file); });
  };
  EXPECT_THAT(read("a: [\n"), HasSubstr("m.yaml:"));
  EXPECT_THAT(read("a: 1\n"), HasSubstr("no containers"));
  EXPECT_THAT(read(""), HasSubstr("no containers"));
  EXPECT_THAT(read("a: 1\nb: {{ .Values.x }}\n"), HasSubstr("m.yaml:2:1"));
  const auto probe = [&](const std::string& fields) {
    return read("kind: Pod\nspec:\n  containers:\n  - name: a\n    startupProbe: " + fields + "\n");
  };
  EXPECT_EQ(probe("{failureThreshold: 3}"), "");
  for (const char* fields :
       {"{failureThreshold: -1}", "{failureThreshold: 0}", "{periodSeconds: 1e9}",
        "{periodSeconds: ten}", "{failureThreshold: [1]}", "[1]",
        "{periodSeconds: 99999999999999999999}"})
    EXPECT_THAT(probe(fields), HasSubstr("m.yaml:5:")) << fields;
  // Aliases that double with each level.
  std::string bomb = "a0: &a0 [x, x]\n";
  for (int i = 1; i < 30; ++i) {
    const std::string last = "*a" + std::to_string(i - 1);
    bomb +=
        "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + last + ", " + last + "]\n";
  }
  EXPECT_THAT(read(bomb), HasSubstr("aliases"));
  EXPECT_NE(read("a: " + std::string(3000, '[')), "");
  EXPECT_NE(read(std::string(5 << 20, 'x')), "");
  EXPECT_THAT(error_of([&] { read_manifest(dir_.path()); }), HasSubstr("no such file"));
}

}  // namespace
}  // namespace warmgate::run
