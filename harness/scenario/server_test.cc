// target.server: what a file means, and what is wrong with one.
#include "harness/scenario/server.h"

#include <gmock/gmock.h>

#include "harness/scenario/test_files.h"

namespace warmgate::scenario {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class Servers : public TestFiles {
 protected:
  ServerTarget server(const std::string& body, const std::string& more = "") {
    const Scenario s = load("scenario: s\ntarget:\n  server:\n" + body + more);
    EXPECT_EQ(s.variants[0].target.kind, Target::Kind::kServer);
    return *s.variants[0].target.server;
  }
  std::string wrong(const std::string& body, const std::string& more = "") {
    return problems("scenario: s\ntarget:\n  server:\n" + body + more);
  }
};

TEST_F(Servers, OneCommand) {
  const Scenario s = load(
      "scenario: s\n"
      "target:\n"
      "  server:\n"
      "    preset: vllm\n"
      "    version: 0.11.0\n"
      "    model: ./m\n"
      "    command: [vllm, serve, \"{model}\", --port, \"{port}\"]\n"
      "    args: [-x]\n"
      "    port: 8123\n"
      "    host: ::1\n"
      "    cwd: sub\n"
      "    env: {A: 1}\n"
      "    stop: [docker, stop, x]\n"
      "    stop_deadline: 5 s\n"
      "    cache: {triton: cold, engine: ../e, cuda: \"copy:c\"}\n"
      "    requests: {first_id: 3, last_id: 255, timeout: 2 s, concurrency: 4}\n"
      "    deadlines: {load: 5 min}\n"
      "    silence: 3 min\n"
      "    memory: 4 GiB\n"
      "workload: {groups: [{requests: 2, prompt_tokens: 8, output_tokens: 4},\n"
      "  {requests: 1, prompt_tokens: 9, output_tokens: 5, class: logprobs}]}\n");
  const Target& target = s.variants[0].target;
  ASSERT_TRUE(target.server);
  const ServerTarget& server = *target.server;
  ASSERT_EQ(server.members.size(), 1u);
  const ServerMember& member = server.members[0];
  EXPECT_EQ(member.name, "server");
  EXPECT_EQ(server.asked, "server");
  EXPECT_THAT(member.argv, ElementsAre("vllm", "serve", "{model}", "--port", "{port}"));
  EXPECT_THAT(member.args, ElementsAre("-x"));
  EXPECT_EQ(member.port, 8123);
  EXPECT_EQ(member.host, "::1");
  EXPECT_EQ(member.cwd, "sub");
  EXPECT_THAT(member.env, IsEmpty());  // the target's, once
  EXPECT_EQ(target.env.at("A"), "1");
  EXPECT_EQ(server.version, "0.11.0");
  EXPECT_THAT(server.stop, ElementsAre("docker", "stop", "x"));
  EXPECT_DOUBLE_EQ(server.stop_deadline_s, 5);
  EXPECT_EQ(server.cache.at("triton"), "cold");
  EXPECT_THAT(server.cache.at("engine"), AllOf(HasSubstr("/e"), Not(HasSubstr(".."))));
  EXPECT_EQ(server.cache.at("cuda").rfind("copy:/", 0), 0u);
  EXPECT_EQ(server.requests.last_id, 255);
  EXPECT_EQ(server.requests.concurrency, 4);
  EXPECT_DOUBLE_EQ(server.requests.timeout_s, 2);
  EXPECT_DOUBLE_EQ(target.deadline_s.at("load"), 300);
  EXPECT_DOUBLE_EQ(*target.silence_s, 180);
  EXPECT_EQ(*target.memory_bytes, 4ll << 30);
  ASSERT_EQ(server.workload.size(), 2u);
  EXPECT_EQ(server.workload[1].request_class, "logprobs");
  EXPECT_EQ(server.workload[0].request_class, "greedy");
}

TEST_F(Servers, ThreeRequestsWhereNobodySaysOtherwise) {
  const ServerTarget s = server("    preset: llamacpp\n    model: m\n");
  ASSERT_EQ(s.workload.size(), 1u);
  EXPECT_EQ(s.workload[0].requests, 3);
  EXPECT_EQ(s.members[0].port, 0);
  EXPECT_TRUE(s.members[0].has_port);
}

constexpr const char* kMembers =
    "    preset: vllm\n    model: m\n    members:\n"
    "      prefill: {port: 8001, role: prefill, env: {X: y}, clock_offset: -2 s}\n"
    "      watcher: {command: [w], port: none, log: sglang}\n"
    "      front: {command: [r, \"{port}\", \"{port:prefill}\"], role: router}\n"
    "      decode: {args: [-d]}\n";

TEST_F(Servers, MembersInTheOrderOfTheFile) {
  const ServerTarget s = server(kMembers);
  ASSERT_EQ(s.members.size(), 4u);
  EXPECT_EQ(s.members[0].name, "prefill");
  EXPECT_EQ(s.members[1].name, "watcher");
  EXPECT_EQ(s.members[3].name, "decode");
  EXPECT_EQ(s.asked, "front");  // the router, not the last
  EXPECT_DOUBLE_EQ(s.members[0].clock_offset_s, -2);
  EXPECT_EQ(s.members[0].env.at("X"), "y");
  EXPECT_FALSE(s.members[1].has_port);
  EXPECT_EQ(s.members[1].log, "sglang");
}

TEST_F(Servers, AVariantChangesOneMember) {
  const Scenario s = load(std::string("scenario: s\ntarget:\n  server:\n") + kMembers +
                          "variants:\n  A: {}\n"
                          "  B: {target: {server: {members: {decode: {args: [-e]}}}}}\n"
                          "  C: {target: {server: {command: [other, \"{port}\"]}}}\n");
  EXPECT_THAT(s.variants[1].target.server->members[3].args, ElementsAre("-e"));
  EXPECT_EQ(s.variants[1].target.server->members.size(), 4u);
  ASSERT_EQ(s.variants[2].target.server->members.size(), 1u);  // one command excludes members
  EXPECT_NE(s.variants[0].identity, s.variants[1].identity);
}

TEST_F(Servers, WhatDecidesTheIdentity) {
  const std::string base = "    preset: vllm\n    model: m\n";
  const auto identity = [&](const std::string& body) {
    return load("scenario: s\ntarget:\n  server:\n" + body).variants[0].identity;
  };
  const std::string plain = identity(base);
  EXPECT_EQ(plain, identity(base + "    silence: 5 s\n"));
  EXPECT_NE(plain, identity(base + "    args: [-x]\n"));
  EXPECT_NE(plain, identity(base + "    cache: {triton: cold}\n"));
  EXPECT_NE(plain, identity(base + "    with: [weightless]\n"));
}

TEST_F(Servers, MistakesAreNamedWithTheirPlace) {
  EXPECT_THAT(wrong("    preset: vlm\n"),
              AllOf(HasSubstr("s.yaml:4:13: target.server.preset: no server preset 'vlm'"),
                    HasSubstr("did you mean vllm?")));
  EXPECT_THAT(wrong("    presets: vllm\n"), HasSubstr("did you mean preset?"));
  EXPECT_THAT(wrong("    model: m\n"), HasSubstr("target.server.command: missing"));
  EXPECT_THAT(wrong("    command: vllm serve\n"),
              HasSubstr("target.server.command: expected a list such as"));
  EXPECT_THAT(wrong("    preset: vllm\n    model: m\n    port: 70000\n"),
              HasSubstr("target.server.port: expected auto, none, or a port from 1 to 65535"));
  EXPECT_THAT(wrong("    preset: vllm\n    model: m\n    port: none\n"),
              HasSubstr("no member opens a port"));
  EXPECT_THAT(wrong("    command: [x]\n"), HasSubstr("{port} stands nowhere"));
  EXPECT_THAT(wrong("    command: [x]\n    port: 80\n"), IsEmpty());
  EXPECT_THAT(wrong("    command: [x]\n    env: {P: \"{port}\"}\n"), IsEmpty());
  EXPECT_THAT(wrong("    command: [x, \"{model}\", \"{port}\"]\n"),
              HasSubstr("target.server.command[1]: {model} is not given"));
  EXPECT_THAT(wrong("    command: [x, \"{prot}\", \"{port}\"]\n"),
              HasSubstr("{prot} is not filled in; did you mean port?"));
  EXPECT_THAT(wrong("    command: [x, '{\"a\": {\"port\": 1}}', \"{port}\"]\n"), IsEmpty());
  EXPECT_THAT(wrong("    preset: vllm\n    model: m\n    with: [weightles]\n"),
              HasSubstr("did you mean weightless?"));
  EXPECT_THAT(wrong("    preset: vllm\n    model: m\n    members: {}\n"),
              HasSubstr("no member is named"));
  EXPECT_THAT(wrong("    preset: vllm\n    model: m\n    port: 80\n    members: {a: {}}\n"),
              HasSubstr("exclude each other"));
}

// They become words of a command line, a line of a request, or a folder that is written to.
TEST_F(Servers, ValuesThatWouldBeSomethingElseThanTheySayAreRefused) {
  const std::string base = "    preset: vllm\n    model: m\n";
  for (const char* host : {"-x y\\n", "a b", "--flag", "", "a/b", "x\\r\\nHost: y", "::x", "[::1]",
                           "a:b", "fe80::1%"}) {
    EXPECT_THAT(wrong(base + "    host: \"" + host + "\"\n"),
                AllOf(HasSubstr("s.yaml:6:11: target.server.host: "),
                      HasSubstr("is no name or address of a host")))
        << host;
  }
  for (const char* host :
       {"127.0.0.1", "::1", "fe80::1%eth0", "localhost", "node-1.cluster", "::ffff:10.0.0.1"}) {
    EXPECT_THAT(wrong(base + "    host: \"" + host + "\"\n"), IsEmpty()) << host;
  }
  EXPECT_THAT(wrong("    members:\n      a: {command: [x], port: 80, host: -h}\n"),
              HasSubstr("members.a.host: '-h' is no name or address"));
  EXPECT_THAT(wrong("    preset: vllm\n    model: --trust-remote-code\n"),
              HasSubstr("target.server.model: '--trust-remote-code' begins with '-'"));
  EXPECT_THAT(wrong("    preset: vllm\n    model: ./-odd\n"), IsEmpty());
  EXPECT_THAT(wrong(base + "    cwd: \"a\\nb\"\n"), HasSubstr("holds control characters"));
}

TEST_F(Servers, AStoreIsNoSystemFolder) {
  const std::string base = "    preset: vllm\n    model: m\n    cache: {engine: \"";
  const std::string home = std::getenv("HOME") ? std::getenv("HOME") : "/root";
  for (const std::string& folder :
       {std::string("/"), std::string("copy:/"), std::string("copy://"), std::string("/tmp/.."),
        std::string("/etc"), std::string("copy:/etc/ssl"), std::string("/usr/lib/x"),
        std::string("/proc/self/root"), std::string("/tmp"), home, "copy:" + home + "/",
        std::string("~"), std::string("copy:~/")}) {
    EXPECT_THAT(
        wrong(base + folder + "\"}\n"),
        AllOf(HasSubstr("s.yaml:6:21: target.server.cache.engine: "), HasSubstr(", and no store")))
        << folder;
  }
  EXPECT_THAT(wrong(base + "copy:\"}\n"), HasSubstr("got nothing"));
  EXPECT_THAT(wrong(base + "wram\"}\n"), HasSubstr("did you mean warm?"));
  EXPECT_THAT(wrong(base + "5\"}\n"), HasSubstr("there is no folder '5'"));
  for (const char* folder : {"/tmp/store", "copy:~/stores/a", "../e", "/opt/caches/engine"}) {
    EXPECT_THAT(wrong(base + folder + "\"}\n"), IsEmpty()) << folder;
  }
}

TEST_F(Servers, MembersThatAreNotThere) {
  EXPECT_THAT(wrong(std::string(kMembers) + "    ask: decod\n"),
              HasSubstr("target.server.ask: there is no member 'decod'; did you mean decode?"));
  EXPECT_THAT(wrong(std::string(kMembers) + "    ask: watcher\n"), HasSubstr("opens a port"));
  EXPECT_THAT(wrong("    members:\n      a: {command: [x, \"{port}\", \"{port:bb}\"]}\n"
                    "      bbb: {command: [y, \"{port}\"]}\n"),
              HasSubstr("members.a.command[2]: there is no member 'bb'; did you mean bbb?"));
  EXPECT_THAT(wrong("    members:\n      a: {command: [x, \"{port}\", \"{port:b}\"]}\n"
                    "      b: {command: [y], port: none}\n"),
              HasSubstr("member b opens no port"));
  EXPECT_THAT(wrong("    members:\n      a: {command: [x], port: 80}\n"
                    "      b: {command: [y], port: 80}\n"),
              HasSubstr("members.b.port: two members have port 80"));
  EXPECT_THAT(wrong("    members:\n      a/b: {command: [x], port: 80}\n"),
              HasSubstr("expected a name of letters"));
}

TEST_F(Servers, ClassesNeedWhatTheyAskFor) {
  const std::string base = "    preset: vllm\n    model: m\n";
  const auto with = [](const std::string& name) {
    return "workload: {requests: 1, prompt_tokens: 1, output_tokens: 1, class: " + name + "}\n";
  };
  EXPECT_THAT(wrong(base, with("gredy")), HasSubstr("did you mean greedy?"));
  EXPECT_THAT(wrong(base, with("adapter")), HasSubstr("need target.server.requests.adapter"));
  EXPECT_THAT(wrong(base + "    requests: {adapter: a}\n", with("adapter")), IsEmpty());
  EXPECT_THAT(wrong(base, with("grammar")), HasSubstr("need target.server.requests.grammar"));
  EXPECT_THAT(wrong(base + "    requests: {first_id: 9, last_id: 9}\n"),
              HasSubstr("requests.last_id: expected more than first_id"));
}

TEST_F(Servers, ResolveShowsNamesOfTheEnvironmentOnly) {
  const Scenario s =
      load("scenario: s\ntarget: {server: {command: [x, \"{port}\"], env: {TOKEN: secret}}}\n");
  const std::string text = resolve_json(s.variants[0]).dump();
  EXPECT_THAT(text, HasSubstr("\"kind\":\"server\""));
  EXPECT_THAT(text, HasSubstr("TOKEN"));
  EXPECT_THAT(text, Not(HasSubstr("secret")));
}

}  // namespace
}  // namespace warmgate::scenario
