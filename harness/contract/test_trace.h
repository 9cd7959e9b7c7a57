// Small hand-written traces for the tests of contract/ and verdict/.
#pragma once

#include <string>
#include <vector>

#include "harness/contract/contract.h"
#include "harness/trace/event.h"
#include "harness/trace/vocabulary.h"

namespace warmgate::contract::testing {

using nlohmann::json;

inline std::vector<std::string> all_kinds() {
  std::vector<std::string> out;
  for (const auto& kind : trace::event_kinds())
    if (kind.ev != "process_end" && kind.ev != "leftover" && kind.ev != "deadline")
      out.emplace_back(kind.ev);
  return out;
}

/// Events a millisecond apart, lines numbered per source "rank<r>".
class TraceBuilder {
 public:
  explicit TraceBuilder(int world = 1) { trace_.world = world; }

  TraceBuilder& at(std::int64_t t_ms) {
    t_ms_ = t_ms;
    return *this;
  }
  TraceBuilder& add(const std::string& ev, json body = json::object(), int rank = 0,
                    const std::string& src = "channel") {
    trace::Event e;
    e.ev = ev;
    e.t_ns = ++t_ms_ * 1'000'000;
    e.rank = rank;
    e.src = src;
    e.source = src == "harness" ? "harness" : "rank" + std::to_string(rank);
    e.line = ++lines_[e.source];
    e.body = std::move(body);
    trace_.events.push_back(std::move(e));
    return *this;
  }
  TraceBuilder& hello(int rank = 0, std::vector<std::string> emits = all_kinds()) {
    return add("hello",
               {{"schema", "events/1.0"}, {"engine", "t"}, {"pid", 100 + rank}, {"emits", emits}},
               rank);
  }
  TraceBuilder& begin(const std::string& phase, int rank = 0) {
    return add("phase_begin", {{"phase", phase}}, rank);
  }
  TraceBuilder& end(const std::string& phase, int rank = 0, const std::string& status = "ok") {
    return add("phase_end", {{"phase", phase}, {"status", status}}, rank);
  }
  TraceBuilder& phase(const std::string& name, int rank = 0) {
    return begin(name, rank).end(name, rank);
  }
  TraceBuilder& ready(int rank = 0) {
    return begin("ready", rank).add("ready", {{"clock", "process"}}, rank).end("ready", rank);
  }
  TraceBuilder& bye(int rank = 0) { return add("bye", json::object(), rank); }
  TraceBuilder& exited(int rank = 0, int code = 0, bool by_us = false) {
    return add(
        "process_end",
        {{"pid", 100 + rank}, {"exit_code", code}, {"killed_by_us", by_us}, {"wall_s", 0.01}}, rank,
        "harness");
  }
  TraceBuilder& signalled(int signal, int rank = 0, bool by_us = false) {
    return add("process_end", {{"pid", 100 + rank}, {"signal", signal}, {"killed_by_us", by_us}},
               rank, "harness");
  }
  TraceBuilder& fault(const std::string& type, const std::string& message, int rank = 0,
                      json more = json::object()) {
    more["type"] = type;
    more["message"] = message;
    return add("fault", std::move(more), rank);
  }
  TraceBuilder& layer(int id, const std::string& kind, const std::string& role,
                      std::vector<std::string> owns, int rank = 0) {
    return add("layer",
               {{"layer", id}, {"kind", kind}, {"ratio", 1}, {"role", role}, {"owns", owns}}, rank);
  }
  TraceBuilder& compile(const std::string& key, const std::string& phase,
                        const std::string& status = "ok", const std::string& arch = "sm_90a",
                        const std::string& src = "channel", int rank = 0,
                        const std::string& source = "compiler") {
    return add("compile",
               {{"kernel", key.substr(0, key.find('{'))},
                {"key", key},
                {"arch", arch},
                {"source", source},
                {"status", status},
                {"phase", phase},
                {"log", status == "ok" ? "" : "k.cu(3): error #39-D: division by zero\nmore"}},
               rank, src);
  }
  TraceBuilder& check(const std::string& key, bool ok) {
    return add("check",
               {{"tensor", key},
                {"kind", "host_key"},
                {"ok", ok},
                {"fault", ok ? "" : "division by zero"},
                {"message", ok ? "" : "x / 0 at row 3"}},
               0, "harness");
  }
  TraceBuilder& launch(const std::string& kernel, const std::string& key, const std::string& phase,
                       const std::string& kind = "c4a", int rank = 0) {
    return add("launch",
               {{"kernel", kernel},
                {"key", key},
                {"layer_kind", kind},
                {"role", "target"},
                {"phase", phase},
                {"layer", 2}},
               rank);
  }
  TraceBuilder& workspace(const std::string& kind, std::int64_t requested, std::int64_t capacity,
                          const std::string& phase, bool grew = false, bool locked = false,
                          int rank = 0) {
    return add("workspace",
               {{"requested", requested},
                {"capacity", capacity},
                {"grew", grew},
                {"locked", locked},
                {"layer", 2},
                {"layer_kind", kind},
                {"role", "target"},
                {"consumer", "attention"},
                {"phase", phase}},
               rank);
  }
  trace::Trace& trace() { return trace_; }
  operator const trace::Trace&() const { return trace_; }

 private:
  trace::Trace trace_;
  std::int64_t t_ms_ = 1000;
  std::map<std::string, std::size_t> lines_;
};

/// A run in which nothing is wrong, up to (not including) bye and process_end.
inline TraceBuilder good_run() {
  TraceBuilder t;
  t.hello().phase("bootstrap").begin("load");
  t.layer(0, "swaonly", "target", {"swa_cache"});
  t.layer(1, "c4a", "target", {"swa_cache", "topk_indices_buffer", "indexer"});
  t.end("load").begin("profile");
  t.add("requires", {{"layer", 1}, {"resource", "topk_indices_buffer"}, {"owned", true}});
  t.workspace("c4a", 4096, 4096, "profile", true).end("profile").begin("kv");
  t.add("kv", {{"bytes", 1000000},
               {"blocks", 10},
               {"tokens", 2560},
               {"concurrency", 2.5},
               {"blocks_per_request", 4},
               {"block_stride", 100000}});
  t.end("kv").begin("warmup");
  t.add("domain", {{"kernel", "K"}, {"keys", {"K{A=1}", "K{A=4}"}}});
  t.add("stage", {{"stage", "metadata"}, {"status", "requested"}});
  t.compile("K{A=1}", "warmup").compile("K{A=4}", "warmup").launch("gemm", "", "warmup");
  t.launch("K", "K{A=4}", "warmup");
  t.add("stage", {{"stage", "metadata"}, {"status", "done"}});
  t.end("warmup").ready().begin("serve");
  t.add("step", {{"id", 0}, {"kind", "real"}, {"rows", 4}, {"requests", 1}});
  t.launch("gemm", "", "serve").launch("K", "K{A=4}", "serve");
  t.workspace("c4a", 4096, 4096, "serve");
  t.add("request", {{"id", 0}, {"ok", true}, {"tokens", 8}});
  t.end("serve").phase("shutdown");
  return t;
}

inline TraceBuilder good_end() {
  TraceBuilder t = good_run();
  t.bye().exited();
  t.check("K{A=1}", true).check("K{A=4}", true);
  return t;
}

inline Result judge_named(const std::string& name, const trace::Trace& trace,
                          const scenario::Resolved* resolved = nullptr) {
  const Context context{trace, resolved};
  return judge(*find_contract(name), context);
}

}  // namespace warmgate::contract::testing
