// A run whose variables, arguments, output and events hold secrets of every kind: whatever warmgate
// writes about it is searched for all of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/cli/process_for_test.h"

namespace warmgate::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

// In every secret, and nowhere else.
const std::string kMark = "zq7";

// Says hello, prints and sends secrets of its own and those it was given, and dies of an exception.
std::string leaking_program() {
  return R"(import json, os, sys, time
mark = "z" + "q7"  # this file is packed too
out = open(os.environ["WARMGATE_EVENTS_DIR"] + "/leak.%d.1.jsonl" % os.getpid(), "a", buffering=1)
def send(ev, **fields):
    out.write(json.dumps(dict(ev=ev, t=time.monotonic_ns(), rank=0, **fields)) + "\n")
given = [os.environ["HF_TOKEN"], os.environ["OUTER_TOKEN"], sys.argv[2]]
signed = "https://b.s3.amazonaws.com/w?X-Amz-Credential=AK" + mark + "cred&X-Amz-Signature=" + mark + "signature05"
bearer = "Authorization: Bearer " + mark + "-bearer-06"
late = "ghp_" + mark + "abcdefghijklmnopqrstuvwxyz0123"
send("hello", schema="events/1.0", engine="leak", pid=os.getpid(), world=1,
     emits=["phase_begin", "phase_end", "fault", "counter"])
send("phase_begin", phase="bootstrap")
print("argv:", sys.argv)
print("given:", given, "GET", signed)
print("json:", json.dumps({"headers": {"authorization": "Bearer " + mark + "-json-07"}, "api_key": [mark + "-key-08"]}))
print("curl -H '" + bearer + "' https://user:" + mark + "pass09@host:8000/v1", file=sys.stderr)
print("token", late, file=sys.stderr)
print("notify https://hooks.slack.com/services/T0" + mark + "A1B/B0" + mark + "C2D/" + mark + "abcdefghijklmnopqrst")
print("report to https://" + mark + "0123456789abcdef0123456789abcde@o1.ingest.sentry.io/42")
print("$ curl -fsS -u me:" + mark + "curl11 --user you:" + mark + "curl12 https://host/v1")
print("short", os.environ["PGPASS"], "cookie", os.environ["X_COOKIE"], file=sys.stderr)
send("check", tensor="x", note=signed, words=given, nested={"deep": [bearer, late]})
print("later the bare values:", mark + "-bearer-06", mark + "signature05", mark + "-json-07", flush=True)
send("fault", type="LoadError", message="cannot read " + signed + " with " + given[0],
     function="load", file="leak.py", line=7)
sys.exit("LoadError: cannot read " + signed + " with " + given[0])
)";
}

std::string leaking_scenario() {
  return "scenario: leaks\nabout: Leaks.\ntarget:\n  command:\n"
         "    argv: [python3, leak.py, --api-key, zq7-argument-03, "
         "'https://user:zq7pass04@host/x', '--url=https://h/x?sig=zq7sig']\n"
         "    env: {HF_TOKEN: zq7-env-01, PGPASS: zq7.p, X_COOKIE: zq7-cookie-13, PLAIN: "
         "'https://u:zq7pass02@proxy:3128/'}\n"
         "variants:\n  A: {}\n  B: {}\n"
         "expect:\n  A: {outcome: crashed}\n";
}

class Leaks : public testing::Test {
 protected:
  void SetUp() override {
    scenario_ = dir_.write("in/leaks.yaml", leaking_scenario()).string();
    dir_.write("in/leak.py", leaking_program());
    fs::create_directories(dir_.path() / "out");
  }

  std::string out(const std::string& name) const { return (dir_.path() / "out" / name).string(); }

  Ran call(std::vector<std::string> arguments) {
    const Ran ran = warmgate(std::move(arguments), {{"OUTER_TOKEN", "zq7-outer-02"},
                                                    {"GITHUB_ACTIONS", "true"},
                                                    {"GITHUB_STEP_SUMMARY", out("summary.md")}});
    clean("stdout", ran.out);
    clean("stderr", ran.err);
    return ran;
  }

  static void clean(const std::string& what, const std::string& text) {
    const std::size_t at = text.find(kMark);
    EXPECT_EQ(at, text.npos) << what << " shows …" << text.substr(at < 60 ? 0 : at - 60, 140)
                             << "…";
  }

  // Everything below out/, names too.
  int clean_files() const {
    int files = 0;
    for (const auto& entry : fs::recursive_directory_iterator(dir_.path() / "out")) {
      clean("a name", entry.path().filename().string());
      if (!entry.is_regular_file()) continue;
      ++files;
      clean(entry.path().string(), slurp(entry.path()));
    }
    return files;
  }

  TempDir dir_;
  std::string scenario_;
};

TEST_F(Leaks, NoArtefactShowsASecret) {
  const Ran ab = call({"ab", scenario_, "--json", out("r.json"), "--junit", out("r.xml"),
                       "--markdown", out("r.md"), "--buildkite", out("r.html"), "--rows",
                       out("rows.jsonl"), "--keep", out("kept"), "-v"});
  EXPECT_EQ(ab.code, 1) << ab.out << ab.err;
  EXPECT_THAT(ab.out, HasSubstr("[secret]"));
  EXPECT_THAT(ab.out, HasSubstr("load (leak.py:7)"));
  for (const char* name : {"r.json", "r.xml", "r.md", "r.html", "summary.md"})
    EXPECT_THAT(slurp(out(name)), HasSubstr("[secret]")) << name;
  EXPECT_THAT(slurp(out("kept/runs/leaks.A.0/trace.jsonl")), HasSubstr("[secret]"));
  EXPECT_THAT(slurp(out("kept/trees/0/scenarios/leaks.yaml")), HasSubstr("secret-left-out"));
  EXPECT_GE(clean_files(), 14);

  const Ran bundled = call({"bundle", out("kept"), "-o", out("leaks.tar")});
  EXPECT_EQ(bundled.code, 0) << bundled.err;
  const Ran from_report = call({"bundle", out("r.json"), "-o", out("report.tar")});
  EXPECT_EQ(from_report.code, 0) << from_report.err;
  clean_files();
}

TEST_F(Leaks, NeitherDoOtherCommandsAndErrors) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"resolve", scenario_},
                                             {"resolve", scenario_, "--json", "-"},
                                             {"run", scenario_, "--variant", "A", "--json", "-",
                                              "--set", "target.command.env.SET_TOKEN=zq7-set-10"},
                                             {"run", scenario_, "--variant", "A", "-v", "--set",
                                              "target.command.env.SET_TOKEN=zq7-set-10"},
                                             {"run", scenario_, "--api-token", "zq7-unknown-11"},
                                             {"run", "https://user:zq7pass12@host/none.yaml"},
                                             {"gate", scenario_, "--buildkite", "-"},
                                             {"bundle", "https://user:zq7pass12@host/none"},
                                             {"probes", "https://user:zq7pass12@host/none"}}) {
    const Ran ran = call(arguments);
    EXPECT_FALSE(ran.out.empty() && ran.err.empty()) << arguments[0];
  }
  // Somebody else's log, of whose secrets nothing is known but what shows.
  const std::string log =
      dir_.write(
              "in/vllm.log",
              "INFO 07-08 22:40:03 api_server.py:1 vLLM API server version 0.9.1\n"
              "INFO args: Namespace(model='x', api_key=['zq7-log-17'], hf_token='zq7-log-18')\n"
              "ERROR RuntimeError: GET https://u:zq7pass19@h/x?X-Amz-Signature=zq7sig20 failed\n")
          .string();
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"explain", log}, {"explain", log, "--json", "-"}})
    call(arguments);
  // A problem quotes the line that it points at.
  const std::string wrong =
      dir_.write("in/wrong.yaml",
                 "scenario: wrong\nabout: x\ntarget:\n  command:\n    argv: [x]\n"
                 "    env: {SOME_TOKEN: zq7-yaml-13, HF_TOKEN: [zq7-yaml-14]}\n"
                 "    envv: {X_PASSWORD: 'zq7 yaml 15'}\n")
          .string();
  const Ran ran = call({"run", wrong});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("wrong.yaml:"));
}

TEST_F(Leaks, ABundleTakesItsSecretsFromTheEnvironment) {
  const std::string file =
      dir_.write("in/env.yaml",
                 "scenario: env\nabout: x\ntarget:\n  command:\n"
                 "    argv: [python3, env.py]\n    env: {HF_TOKEN: zq7-env-16}\n")
          .string();
  dir_.write("in/env.py", R"(import os, sys
print("the token has", len(os.environ.get("HF_TOKEN", "")), "letters")
sys.exit(3)
)");
  ASSERT_EQ(call({"run", file, "--keep", out("kept")}).code, 1);
  ASSERT_EQ(call({"bundle", out("kept"), "-o", out("env.tar.gz")}).code, 0);
  const Ran again =
      warmgate({"run", out("env.tar.gz"), "--json", "-"}, {{"HF_TOKEN", "zq7-other"}});
  EXPECT_EQ(again.code, 1) << again.err;
  EXPECT_THAT(again.out, HasSubstr("the token has 9 letters"));
  clean("stdout", again.out);
  // An argument has nowhere to come from.
  ASSERT_EQ(call({"run", scenario_, "--variant", "A", "--keep", out("kept2")}).code, 0);
  ASSERT_EQ(call({"bundle", out("kept2"), "-o", out("arg.tar")}).code, 0);
  const Ran refused = call({"run", out("arg.tar")});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("held a secret"));
}

}  // namespace
}  // namespace warmgate::cli
