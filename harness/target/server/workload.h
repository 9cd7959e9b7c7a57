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
  HttpLimits limits;            // total_s: of one request
  bool say_first_token = true;  // `ready` {clock: first_token} with the first token
  int rank = 0;                 // of the member, for events
};

struct RequestResult {
  std::string id;             // "greedy-1": class and ordinal
  std::string request_class;  // greedy, seeded …
  std::int64_t ordinal = 0;   // 1 = the first that was sent
  bool alone = false;         // nothing else of ours was under way
  /// Answered with 2xx, ended as promised, no error in it, something was generated, by the server's
  /// count no more tokens than asked for, and where the body says ignore_eos no fewer.
  bool ok = false;
  std::string error;  // why not, one line
  HttpEnd end = HttpEnd::kUnreachable;
  int status = 0;
  bool sent = false;  // false: cancelled before its turn
  std::int64_t prompt_asked = 0, tokens_asked = 0;
  StreamResult answer;
  std::optional<double> ttft_ms;  // request sent → first chunk that brought something generated
  std::optional<double> inter_token_ms_p50, inter_token_ms_p99;
  double total_ms = 0;
  std::int64_t start_ns = 0, end_ns = 0;
};

struct WorkloadResult {
  std::vector<RequestResult> requests;  // by ordinal
  bool cancelled = false;
  /// requests_failed; ttft_first_ms, ttft_second_ms, ttft_third_ms (of requests that went alone
  /// and are like the first in class and length); ttft_ms, request_ms (medians of the requests
  /// that are ok, from the third on), inter_token_ms, inter_token_p99_ms; what answers carry of
  /// Completion::figures, summed. What was not seen is not in it. (requests_ok and output_tokens
  /// come of the events.)
  std::map<std::string, double> figures() const;
  /// When the server had become steady: the end of the first request from the second on whose
  /// first token came no later than that of the next, by a quarter and 5 ms.
  std::optional<std::int64_t> steady_ns() const;
};

/// Blocks until every request ended or `cancel` struck. Each result is a `request` event {id,
/// class, class_seen, member, ok, status, end, prompt_asked, prompt_tokens, tokens_asked, tokens,
/// tokens_from, chunks, ttft_ms,
/// inter_token_ms_p50, inter_token_ms_p99, gaps, total_ms, ordinal, alone, text_sha256, error}
/// (what was not observed is absent), sent as it ends. Prompts and answers are in no event.
WorkloadResult run_workload(const WorkloadSpec& spec, const Emit& emit,
                            const CancelToken* cancel = nullptr);

/// `counter` events of the figures, src http.
std::vector<trace::Event> figure_events(const WorkloadResult& result, int rank, std::int64_t t_ns);

/// How many requests the groups ask for, at most kMaxRequests.
inline constexpr std::int64_t kMaxRequests = 10000;
std::int64_t request_count(const WorkloadSpec& spec);

/// The body of request `ordinal` (from 1). Throws std::out_of_range.
nlohmann::json request_body(const WorkloadSpec& spec, std::int64_t ordinal);

}  // namespace warmgate::target
