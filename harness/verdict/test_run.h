// Runs by hand for the tests of verdict/.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "harness/contract/test_trace.h"
#include "harness/verdict/outcome.h"
#include "harness/verdict/verdict.h"

namespace warmgate::verdict::testing {

inline contract::Finding finding(const std::string& contract, const std::string& key,
                                 const std::string& phase = "serve") {
  contract::Finding f;
  f.contract = contract;
  f.key = key;
  f.phase = phase;
  f.message = contract + " is broken by " + key;
  return f;
}

inline contract::Result kept(const std::string& name) {
  contract::Result r;
  r.contract = name;
  return r;
}

inline contract::Result broken(const std::string& name, std::vector<std::string> keys,
                               const std::string& phase = "serve") {
  contract::Result r;
  r.contract = name;
  r.state = contract::State::kBroken;
  for (const std::string& key : keys) r.findings.push_back(finding(name, key, phase));
  return r;
}

inline contract::Result unseen(const std::string& name) {
  contract::Result r;
  r.contract = name;
  r.state = contract::State::kNotObserved;
  r.why = "the run ended before serving";
  return r;
}

inline WorkerEnd worker(int code = 0, int signal = 0, int rank = 0) {
  WorkerEnd w;
  w.rank = rank;
  w.pid = 100 + rank;
  w.exited = signal == 0;
  w.exit_code = code;
  w.signal = signal;
  w.peak_rss_bytes = 1 << 20;
  w.wall_s = 0.01;
  return w;
}

inline RunRecord run(Outcome outcome, const std::string& variant = "B") {
  RunRecord r;
  r.scenario = "s";
  r.variant = variant;
  r.outcome = outcome;
  r.reason = "because";
  return r;
}

}  // namespace warmgate::verdict::testing
