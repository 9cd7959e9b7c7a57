// Traces come from programs that may be broken or lie. No contract may throw, crash or take time,
// whatever a field holds; a judgement that fails is reported as such and would be seen here.
#include <gtest/gtest.h>
#include <set>

#include <limits>
#include <map>

#include "harness/contract/test_trace.h"
#include "harness/scenario/contract_names.h"

namespace warmgate::contract {
namespace {

using namespace testing;

std::vector<json> nasty() {
  return {nullptr,
          true,
          -1,
          0,
          std::numeric_limits<std::int64_t>::max(),
          std::numeric_limits<std::int64_t>::min(),
          std::numeric_limits<std::uint64_t>::max(),
          1e308,
          -0.5,
          "",
          std::string(3000, 'x'),
          "\xff\xfe{",
          json::array({1, "a", nullptr}),
          json::array(),
          json::object({{"a", 1}})};
}

void all_contracts(const trace::Trace& trace) {
  for (const Contract* contract : builtin_contracts()) {
    const Result result = judge(*contract, Context{trace, nullptr});
    EXPECT_EQ(result.contract, contract->name());
    EXPECT_EQ(result.why.find("the judgement itself failed"), std::string::npos)
        << contract->name() << ": " << result.why;
    EXPECT_EQ(result.state == State::kBroken, !result.findings.empty()) << contract->name();
    for (const auto* list : {&result.findings, &result.notes}) {
      for (const Finding& f : *list) {
        EXPECT_EQ(f.contract, contract->name());
        EXPECT_FALSE(f.key.empty() && f.message.empty());
        for (std::size_t i : f.events) EXPECT_LT(i, trace.events.size());
        (void)f.detail.dump(-1, ' ', false, json::error_handler_t::replace);
      }
    }
  }
}

void every_field_of(const trace::Trace& good) {
  std::map<std::pair<std::string, std::string>, int> done;
  for (std::size_t i = 0; i < good.events.size(); ++i) {
    const json body = good.events[i].body.to_json();
    for (const auto& [key, value] : body.items()) {
      // The first of a kind and one more say what the tenth would say.
      if (++done[{good.events[i].ev, key}] > 2) continue;
      for (const json& bad : nasty()) {
        trace::Trace t = good;
        t.events[i].body.set(key, bad);
        all_contracts(t);
      }
      trace::Trace t = good;
      json without = body;
      without.erase(key);
      t.events[i].body = without;
      all_contracts(t);
    }
  }
}

TEST(Hostile, EveryFieldOfEveryEvent) {
  TraceBuilder base = good_end();
  base.trace().world = 2;
  base.add("collective", {{"communicator", "tp"}, {"kind", "x"}, {"bytes", 8}, {"seq", 0}});
  base.fault("RuntimeError", "m").add("skip", {{"step", "s"}, {"reason", "r"}});
  base.add("leftover", {{"what", "file"}, {"path", "/a/b"}}, 0, "harness");
  every_field_of(base.trace());
}

TEST(Hostile, EveryFieldOfMeasurements) {
  TraceBuilder base;
  base.hello();
  for (const char* phase : {"profile", "serve"}) {
    base.add("phase_end",
             {{"phase", phase}, {"status", "ok"}, {"peak_bytes", 9}, {"persistent_bytes", 4}});
    base.add("launch", {{"kernel", "gemm"}, {"key", ""}, {"phase", phase}, {"signature", phase}});
    base.add("state", {{"at", phase}, {"keeps", {"a"}}, {"a", phase}, {"kv_nan", 0}});
  }
  base.add("limits", {{"max_num_batched_tokens", 1}, {"max_num_seqs", 1}, {"max_model_len", 1}});
  base.add("step", {{"id", 0}, {"kind", "dummy"}, {"rows", 2}, {"requests", 1}, {"longest", 2}});
  base.add("poisoned",
           {{"what", "ids"}, {"value", "-1"}, {"status", "end"}, {"before", 1}, {"after", 2}});
  base.add("check",
           {{"tensor", "out"}, {"kind", "numerics"}, {"error", 0.5}, {"limit", 0.1}, {"count", 2}});
  base.exited();
  every_field_of(base.trace());
}

TEST(Hostile, RanksClocksAndBodies) {
  for (std::optional<int> rank :
       {std::optional<int>(), std::optional<int>(-1), std::optional<int>(2147483647)}) {
    for (std::int64_t t_ns : {std::numeric_limits<std::int64_t>::min(), std::int64_t{0},
                              std::numeric_limits<std::int64_t>::max()}) {
      trace::Trace t = good_end().trace();
      t.world = rank ? 2 : 1;
      for (std::size_t i = 0; i < t.events.size(); i += 2) {
        t.events[i].rank = rank;
        t.events[i].t_ns = t_ns;
        t.events[i].res_ns = t_ns;
      }
      all_contracts(t);
      t.sort_by_time();
      all_contracts(t);
    }
  }
  trace::Trace bodies = good_end().trace();
  for (auto& e : bodies.events) e.body = json();  // not even an object
  all_contracts(bodies);
  all_contracts(trace::Trace());
}

TEST(Registry, NamesAreUniqueAndPromiseSomething) {
  std::set<std::string_view> names;
  for (const Contract* contract : builtin_contracts()) {
    EXPECT_TRUE(names.insert(contract->name()).second) << contract->name();
    EXPECT_FALSE(contract->promise().empty());
    EXPECT_EQ(find_contract(contract->name()), contract);
    const scenario::ContractName* known = scenario::find_contract_name(contract->name());
    ASSERT_NE(known, nullptr) << contract->name() << " cannot be named in a scenario";
    EXPECT_FALSE(known->comparison);
    for (const std::string& kind : contract->needs())
      EXPECT_NE(trace::find_kind(kind), nullptr) << kind;
  }
  EXPECT_EQ(find_contract("no-such"), nullptr);
}

class Throws : public Contract {
 public:
  std::string_view name() const override { return "throws"; }
  std::string_view promise() const override { return "nothing"; }
  std::vector<std::string> needs() const override { return {}; }
  Result judge(const Context&) const override { throw std::runtime_error("boom"); }
};

TEST(Registry, AContractThatThrowsIsNotObserved) {
  const trace::Trace trace;
  const Result result = judge(Throws(), Context{trace, nullptr});
  EXPECT_EQ(result.state, State::kNotObserved);
  EXPECT_NE(result.why.find("boom"), std::string::npos);
}

}  // namespace
}  // namespace warmgate::contract
