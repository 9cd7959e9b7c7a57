// Asks a server for work, measures how it comes, and says it as events. The same seed gives the
// same requests to every variant; no two requests of a run share a prompt (a prefix cache would
// answer the second), and all of a group have the same length.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/scenario/server.h"
#include "harness/target/server/client.h"
#include "harness/target/server/preset.h"
#include "harness/target/server/stream.h"
#include "harness/trace/event.h"

namespace warmgate::target {

/// Called from any thread.
using Emit = std::function<void(trace::Event)>;

struct WorkloadSpec {
  std::string host = "127.0.0.1";
  int port = 0;
  std::string member;     // for events
  Completion completion;  // how it is asked
  std::string model;      // in the body
  std::string adapter, grammar;
  std::vector<scenario::ServerTarget::Group> groups;
  std::uint64_t seed = 0;
  std::int64_t first_id = 0, last_id = 0;  // prompt ids, both included; 0, 0 = the completion's
  std::int64_t concurrency = 1;
  /// So many requests go first, one after the other: their times are comparable with each other.
  std::int64_t alone = 3;
  HttpLimits limits;  // total_s: of one request
  int rank = 0;       // of the member, for events
};

struct RequestResult {
  std::string id;             // "greedy-1": class and number in it
  std::string request_class;  // greedy, seeded …
  std::int64_t ordinal = 0;   // 1 = the first that was sent
  bool ok = false;            // answered 2xx, ended as promised, no error in it, at least one token
  std::string error;          // why not, one line
  HttpEnd end = HttpEnd::kUnreachable;
  int status = 0;
  bool sent = false;  // false: cancelled before its turn
  std::int64_t prompt_asked = 0, tokens_asked = 0;
  StreamResult answer;
  std::optional<double> ttft_ms;  // request sent → first chunk that brought text
  std::optional<double> inter_token_ms_p50, inter_token_ms_p99;
  double total_ms = 0;
  std::int64_t start_ns = 0, end_ns = 0;
};

struct WorkloadResult {
  std::vector<RequestResult> requests;  // by ordinal
  bool cancelled = false;
  /// requests_ok, output_tokens, ttft_first_ms, ttft_second_ms, ttft_third_ms (of requests that
  /// went alone), ttft_ms and inter_token_ms (medians over the requests that are ok) … A figure
  /// that was not seen is not in it.
  std::map<std::string, double> figures() const;
};

/// Blocks until every request ended or `cancel` struck. Each result is a `request` event {id,
/// class, member, ok, status, prompt_tokens, tokens, tokens_from, ttft_ms, inter_token_ms_p50,
/// inter_token_ms_p99, total_ms, ordinal, error}, sent as it ends; the first token of the first
/// request is `ready` {clock: first_token}. Prompts are in no event.
WorkloadResult run_workload(const WorkloadSpec& spec, const Emit& emit,
                            const CancelToken* cancel = nullptr);

/// The body of request `index` (0-based) of the whole workload; for tests and for the report.
nlohmann::json request_body(const WorkloadSpec& spec, std::int64_t index);

/// Asks Completion's endpoint of a server for one token; the clock `first_token` where there is no
/// workload.
RequestResult first_token(const WorkloadSpec& spec, const CancelToken* cancel = nullptr);

}  // namespace warmgate::target
