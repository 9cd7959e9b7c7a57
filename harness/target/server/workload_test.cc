#include "harness/target/server/workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <thread>

#include "harness/target/server/test_server.h"
#include "harness/trace/vocabulary.h"

namespace warmgate::target {
namespace {

using nlohmann::json;
using testing::answer;
using testing::body_of;
using ::testing::HasSubstr;
using testing::Peer;
using testing::TestServer;

Completion openai() {
  Completion c;
  c.path = "/v1/completions";
  c.body = json::parse(R"({"model":"{model}","prompt":"{prompt}","max_tokens":"{output_tokens}",
      "stream":true,"stream_options":{"include_usage":true},"temperature":0})");
  c.classes["seeded"] = json::parse(R"({"temperature":1.0,"seed":"{seed}"})");
  c.classes["logprobs"] = json::parse(R"({"logprobs":5})");
  c.classes["grammar"] = json::parse(R"({"guided":{"regex":"{grammar}"},"temperature":null})");
  c.classes["adapter"] = json::parse(R"({"model":"{adapter}"})");
  c.done = "[DONE]";
  c.text = {"/choices/0/text"};
  c.tokens = {"/usage/completion_tokens"};
  c.prompt_tokens = {"/usage/prompt_tokens"};
  c.error = {"/error/message"};
  c.shows = {{"logprobs", {"/choices/0/logprobs"}}};
  c.first_id = 1000;
  c.last_id = 1999;
  return c;
}

WorkloadSpec spec_for(int port, std::int64_t requests = 3) {
  WorkloadSpec spec;
  spec.port = port;
  spec.member = "server";
  spec.completion = openai();
  spec.model = "m";
  spec.adapter = "lora";
  spec.grammar = "a|b";
  spec.groups = {{requests, 8, 4, "greedy"}};
  spec.seed = 7;
  spec.limits.first_byte_s = 2;
  return spec;
}

void stream(Peer& peer, int tokens, int pause_ms = 2, bool usage = true) {
  peer.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (int i = 0; i < tokens; ++i) {
    peer.pause(pause_ms);
    peer.say_chunk("data: {\"choices\":[{\"text\":\"x\",\"logprobs\":{}}]}\n\n");
  }
  if (usage)
    peer.say_chunk("data: {\"choices\":[],\"usage\":{\"prompt_tokens\":8,\"completion_tokens\":" +
                   std::to_string(tokens) + "}}\n\n");
  peer.say_chunk("data: [DONE]\n\n");
  peer.say("0\r\n\r\n");
}

struct Events {
  std::mutex mutex;
  std::vector<trace::Event> all;
  Emit emit() {
    return [this](trace::Event e) {
      const std::lock_guard lock(mutex);
      all.push_back(std::move(e));
    };
  }
  std::vector<trace::Event> of(const std::string& kind) {
    std::vector<trace::Event> out;
    for (const auto& e : all) {
      if (e.ev == kind) out.push_back(e);
    }
    return out;
  }
};

std::vector<json> bodies(TestServer& server) {
  std::vector<json> out;
  for (const std::string& each : server.heard()) out.push_back(json::parse(body_of(each)));
  return out;
}

TEST(Prompts, DifferPerRequestAndHaveEqualLength) {
  for (const std::string kind : {"ids", "text"}) {
    WorkloadSpec spec = spec_for(1, 300);
    spec.completion.prompt = kind;
    std::set<std::string> prompts, beginnings;
    std::set<std::size_t> lengths;
    for (std::int64_t i = 1; i <= 300; ++i) {
      const json prompt = request_body(spec, i).at("prompt");
      ASSERT_EQ(prompt.is_array(), kind == "ids");
      prompts.insert(prompt.dump());
      lengths.insert(kind == "ids" ? prompt.size() : prompt.get<std::string>().size());
      if (kind == "ids") {
        beginnings.insert(prompt[0].dump());
        for (const json& id : prompt) {
          EXPECT_GE(id.get<int>(), 1000);
          EXPECT_LE(id.get<int>(), 1999);
        }
      }
    }
    EXPECT_EQ(prompts.size(), 300u) << kind;
    EXPECT_EQ(lengths.size(), 1u) << kind;
    if (kind == "ids") {
      EXPECT_EQ(beginnings.size(), 300u) << "no prefix in common";
    }
  }
}

TEST(Prompts, AreUniqueWithTinyVocabularies) {
  WorkloadSpec spec = spec_for(1, 100);
  spec.first_id = 5;
  spec.last_id = 7;
  std::set<std::string> prompts;
  for (std::int64_t i = 1; i <= 100; ++i) prompts.insert(request_body(spec, i).at("prompt").dump());
  EXPECT_EQ(prompts.size(), 100u);
  spec.last_id = 5;  // one id: nothing can differ, and nothing hangs
  EXPECT_EQ(request_body(spec, 3).at("prompt"), json(std::vector<int>(8, 5)));
}

TEST(Prompts, TheSeedDecidesAndNothingElse) {
  WorkloadSpec a = spec_for(1), b = spec_for(2);
  b.member = "other";
  EXPECT_EQ(request_body(a, 2), request_body(b, 2));
  b.seed = 8;
  EXPECT_NE(request_body(a, 2), request_body(b, 2));
  EXPECT_THROW(request_body(a, 0), std::out_of_range);
  EXPECT_THROW(request_body(a, 4), std::out_of_range);
}

TEST(Prompts, ClassesAreLaidOverTheBody) {
  WorkloadSpec spec = spec_for(1);
  spec.groups = {{1, 8, 4, "greedy"},  {1, 8, 4, "seeded"},  {1, 8, 4, "logprobs"},
                 {1, 8, 9, "grammar"}, {1, 8, 4, "adapter"}, {1, 8, 4, "unheard of"}};
  EXPECT_EQ(request_count(spec), 6);
  const json greedy = request_body(spec, 1), seeded = request_body(spec, 2);
  EXPECT_EQ(greedy.at("model"), "m");
  EXPECT_EQ(greedy.at("max_tokens"), 4);
  EXPECT_EQ(greedy.at("temperature"), 0);
  EXPECT_EQ(seeded.at("temperature"), 1.0);
  EXPECT_TRUE(seeded.at("seed").is_number_integer());
  EXPECT_EQ(request_body(spec, 3).at("logprobs"), 5);
  EXPECT_EQ(request_body(spec, 4).at("guided").at("regex"), "a|b");
  EXPECT_EQ(request_body(spec, 4).count("temperature"), 0u);
  EXPECT_EQ(request_body(spec, 4).at("max_tokens"), 9);
  EXPECT_EQ(request_body(spec, 5).at("model"), "lora");
  EXPECT_EQ(request_body(spec, 6).at("temperature"), 0);
}

TEST(Workload, InOrderWithTimes) {
  TestServer server([](Peer& peer, const std::string&, int number) {
    peer.pause(number == 0 ? 60 : 1);
    stream(peer, 4);
  });
  Events events;
  const WorkloadResult result = run_workload(spec_for(server.port(), 4), events.emit());
  ASSERT_EQ(result.requests.size(), 4u);
  EXPECT_FALSE(result.cancelled);
  std::int64_t before = 0;
  for (const RequestResult& r : result.requests) {
    EXPECT_TRUE(r.ok) << r.error;
    EXPECT_EQ(r.answer.tokens, 4);
    EXPECT_EQ(r.answer.prompt_tokens, 8);
    EXPECT_TRUE(r.alone);
    EXPECT_GT(r.start_ns, before);
    before = r.end_ns;
    ASSERT_TRUE(r.ttft_ms.has_value());
    EXPECT_GT(*r.ttft_ms, 0);
    EXPECT_LT(*r.ttft_ms, r.total_ms);
    EXPECT_GE(*r.inter_token_ms_p99, *r.inter_token_ms_p50);
  }
  const auto figures = result.figures();
  EXPECT_GE(figures.at("ttft_first_ms"), 60);
  EXPECT_EQ(figures.at("ttft_second_ms"), *result.requests[1].ttft_ms);
  EXPECT_EQ(figures.at("ttft_third_ms"), *result.requests[2].ttft_ms);
  EXPECT_EQ(figures.at("requests_failed"), 0);
  EXPECT_GT(figures.at("inter_token_ms"), 0);
  for (const auto& [name, value] : figures) EXPECT_NE(trace::find_figure(name), nullptr) << name;

  const auto said = events.of("request");
  ASSERT_EQ(said.size(), 4u);
  EXPECT_EQ(said[0].str("id"), "greedy-1");
  EXPECT_EQ(said[0].str("member"), "server");
  EXPECT_TRUE(said[0].flag("ok"));
  EXPECT_EQ(said[0].num("status"), 200);
  EXPECT_EQ(said[0].num("tokens"), 4);
  EXPECT_EQ(said[0].str("tokens_from"), "usage");
  EXPECT_EQ(said[0].num("ordinal"), 1);
  EXPECT_FALSE(said[0].body.contains("class_seen"));
  EXPECT_FALSE(said[0].body.contains("error"));
  for (const auto& e : events.all) trace::parse_event(trace::to_line(e));
  const auto ready = events.of("ready");
  ASSERT_EQ(ready.size(), 1u);
  EXPECT_EQ(ready[0].str("clock"), "first_token");
  EXPECT_EQ(ready[0].t_ns, result.requests[0].answer.first_ns);
}

TEST(Workload, TheFirstGoAloneTheOthersTogether) {
  TestServer server([&](Peer& peer, const std::string&, int) { stream(peer, 2, 10); });
  WorkloadSpec spec = spec_for(server.port(), 11);
  spec.concurrency = 4;
  const WorkloadResult result = run_workload(spec, {});
  std::size_t most = 0;
  for (const RequestResult& r : result.requests) {
    EXPECT_TRUE(r.ok) << r.error;
    EXPECT_EQ(r.alone, r.ordinal <= 3);
    // Those under way when this one began, itself included.
    std::size_t together = 0;
    for (const RequestResult& other : result.requests)
      together += other.start_ns <= r.start_ns && r.start_ns < other.end_ns;
    most = std::max(most, together);
    if (r.alone) {
      EXPECT_EQ(together, 1u) << r.id;
    }
  }
  EXPECT_GT(most, 1u);
  EXPECT_LE(most, 4u);
  std::set<std::string> prompts;
  for (const json& body : bodies(server)) prompts.insert(body.at("prompt").dump());
  EXPECT_EQ(prompts.size(), 11u);
}

TEST(Workload, OtherClassesAreNoSecondOrThird) {
  TestServer server([](Peer& peer, const std::string&, int) { stream(peer, 2); });
  WorkloadSpec spec = spec_for(server.port());
  spec.groups = {{1, 8, 4, "greedy"}, {1, 8, 4, "logprobs"}, {1, 16, 4, "greedy"}};
  Events events;
  const auto figures = run_workload(spec, events.emit()).figures();
  EXPECT_EQ(figures.count("ttft_first_ms"), 1u);
  EXPECT_EQ(figures.count("ttft_second_ms"), 0u);
  EXPECT_EQ(figures.count("ttft_third_ms"), 0u);
  EXPECT_TRUE(events.of("request").at(1).flag("class_seen"));
}

TEST(Workload, WhatIsNotOkAndWhy) {
  const auto with = [](TestServer::Script script) {
    TestServer server(std::move(script));
    WorkloadSpec spec = spec_for(server.port(), 1);
    spec.limits.idle_s = 0.1;
    spec.limits.first_byte_s = 0.1;
    Events events;
    const RequestResult r = run_workload(spec, events.emit()).requests.at(0);
    EXPECT_FALSE(r.ok);
    EXPECT_EQ(events.of("request").size(), 1u);
    EXPECT_FALSE(events.of("request").at(0).flag("ok", true));
    EXPECT_EQ(r.error, events.of("request").at(0).str("error"));
    return r;
  };
  EXPECT_EQ(with([](Peer& peer, const std::string&, int) {
              peer.say(answer(R"({"error":{"message":"no\nsuch model"}})", "404 Not Found"));
            }).error,
            "status 404: no such model");
  EXPECT_EQ(with([](Peer& peer, const std::string&, int) {
              peer.say(answer("<html>busy", "503 Service Unavailable"));
            }).error,
            "status 503: <html>busy");
  EXPECT_EQ(with([](Peer& peer, const std::string&, int) {
              peer.say(answer("", "307 Moved", "Location: /x\r\n"));
            }).error,
            "status 307");
  EXPECT_EQ(with([](Peer& peer, const std::string&, int) {
              peer.say(answer("data: {\"error\":{\"message\":\"engine died\"}}\n\n"));
            }).error,
            "the answer says: engine died");
  EXPECT_THAT(with([](Peer& peer, const std::string&, int) {
                peer.say(answer("data: {\"choices\":[{\"text\":\"x\"}]}\n\n"));
              }).error,
              HasSubstr("promised end"));
  EXPECT_EQ(
      with([](Peer& peer, const std::string&, int) { peer.say(answer("data: [DONE]\n\n")); }).error,
      "nothing was generated");
  EXPECT_THAT(with([](Peer&, const std::string&, int) {}).error, HasSubstr("closed"));
  EXPECT_THAT(with([](Peer& peer, const std::string&, int) { peer.pause(5000); }).error,
              HasSubstr("no_answer"));
  const RequestResult half = with([](Peer& peer, const std::string&, int) {
    peer.say("HTTP/1.1 200 OK\r\n\r\ndata: {\"choices\":[{\"text\":\"x\"}]}\n\n");
    peer.pause(5000);
  });
  EXPECT_THAT(half.error, HasSubstr("stalled"));
  EXPECT_EQ(half.answer.text, "x") << "what came is kept";
}

TEST(Workload, AShortAnswerWhereEndsAreIgnored) {
  TestServer server([](Peer& peer, const std::string&, int number) {
    stream(peer, number == 2 ? 4 : 3, 0, number != 3);
  });
  WorkloadSpec spec = spec_for(server.port(), 4);
  EXPECT_TRUE(run_workload(spec, {}).requests[0].ok) << "it may have met an end of text";
  TestServer other([](Peer& peer, const std::string&, int number) {
    stream(peer, number == 1 ? 4 : 3, 0, number != 2);
  });
  spec.port = other.port();
  spec.completion.body["sampling"] = {{"ignore_eos", true}};
  spec.groups = {{3, 8, 4, "greedy"}, {1, 8, 4, "grammar"}};
  const auto requests = run_workload(spec, {}).requests;
  EXPECT_EQ(requests[0].error, "3 tokens of 4, and ends of text were to be ignored");
  EXPECT_TRUE(requests[1].ok);
  EXPECT_TRUE(requests[2].ok) << "chunks that were counted prove nothing";
  EXPECT_TRUE(requests[3].ok);
}

TEST(Workload, MoreTokensThanAskedFor) {
  TestServer server([](Peer& peer, const std::string&, int) { stream(peer, 5, 0); });
  EXPECT_THAT(run_workload(spec_for(server.port(), 1), {}).requests[0].error,
              HasSubstr("5 tokens by the server's count, and at most 4"));
}

TEST(Workload, FailuresAreCountedAndTimesAreOfWhatWorked) {
  TestServer server([](Peer& peer, const std::string&, int number) {
    if (number == 1) {
      peer.say(answer("", "500 Oh"));
    } else {
      stream(peer, 2);
    }
  });
  const auto figures = run_workload(spec_for(server.port()), {}).figures();
  EXPECT_EQ(figures.at("requests_failed"), 1);
  EXPECT_EQ(figures.count("ttft_first_ms"), 1u);
  EXPECT_EQ(figures.count("ttft_second_ms"), 0u);
  EXPECT_EQ(figures.count("ttft_third_ms"), 1u);
}

TEST(Workload, NobodyThere) {
  int port = 0;
  {
    TestServer server([](Peer&, const std::string&, int) {});
    port = server.port();
  }
  const WorkloadResult result = run_workload(spec_for(port, 2), {});
  EXPECT_EQ(result.requests[1].end, HttpEnd::kRefused);
  EXPECT_EQ(result.figures().at("requests_failed"), 2);
  EXPECT_EQ(result.figures().size(), 1u) << "nothing else was observed";
  EXPECT_FALSE(result.steady_ns().has_value());
}

TEST(Workload, CancelledRequestsAreNobodysFault) {
  CancelToken cancel;
  TestServer server([&](Peer& peer, const std::string&, int number) {
    if (number == 0) return stream(peer, 2);
    cancel.cancel();
    peer.pause(30000);
  });
  Events events;
  const WorkloadResult result = run_workload(spec_for(server.port(), 5), events.emit(), &cancel);
  EXPECT_TRUE(result.cancelled);
  EXPECT_TRUE(result.requests[0].ok);
  EXPECT_TRUE(result.requests[1].sent);
  EXPECT_FALSE(result.requests[1].ok);
  EXPECT_FALSE(result.requests[2].sent);
  EXPECT_EQ(events.of("request").size(), 1u);
  EXPECT_EQ(result.figures().at("requests_failed"), 0);
}

TEST(Workload, NothingToDo) {
  WorkloadSpec spec = spec_for(1, 0);
  EXPECT_TRUE(run_workload(spec, {}).requests.empty());
  EXPECT_TRUE(run_workload(spec, {}).figures().empty());
  spec.groups = {{-5, 8, 4, "greedy"}, {1'000'000'000, 8, 4, "greedy"}};
  EXPECT_EQ(request_count(spec), kMaxRequests);
}

RequestResult timed(std::int64_t ordinal, double ttft) {
  RequestResult r;
  r.ordinal = ordinal;
  r.ok = r.alone = r.sent = true;
  r.end = HttpEnd::kAnswered;
  r.ttft_ms = ttft;
  r.end_ns = ordinal * 100;
  return r;
}

TEST(Workload, SteadyIsWhenTheNextIsNoFaster) {
  WorkloadResult w;
  w.requests = {timed(1, 900), timed(2, 300), timed(3, 100), timed(4, 98)};
  EXPECT_EQ(w.steady_ns(), 300);
  w.requests[1].ttft_ms = 104;
  EXPECT_EQ(w.steady_ns(), 200);
  w.requests.resize(2);
  EXPECT_FALSE(w.steady_ns().has_value()) << "two requests cannot tell";
}

TEST(Workload, FiguresAsEvents) {
  WorkloadResult w;
  w.requests = {timed(1, 9), timed(2, 3), timed(3, 1)};
  w.requests[0].answer.figures = {{"draft_tokens", 4}};
  w.requests[1].answer.figures = {{"draft_tokens", 5}};
  std::map<std::string, double> said;
  for (const auto& e : figure_events(w, 2, 77)) {
    EXPECT_EQ(e.ev, "counter");
    EXPECT_EQ(e.t_ns, 77);
    EXPECT_EQ(e.rank, 2);
    said[e.str("name")] = e.real("value");
  }
  EXPECT_EQ(said, w.figures());
  EXPECT_EQ(said.at("draft_tokens"), 9);
}

}  // namespace
}  // namespace warmgate::target
