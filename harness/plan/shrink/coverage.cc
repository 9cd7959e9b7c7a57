#include "harness/plan/shrink/coverage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

namespace warmgate::plan::shrink {
namespace {

std::string plural(std::size_t count, const char* word) {
  return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s");
}

// The widths and limits that a start can break on, as they stand in the config.
std::string limits_of(const Json& config) {
  std::string out;
  for (const char* key :
       {"max_position_embeddings", "hidden_size", "num_attention_heads", "num_key_value_heads",
        "head_dim", "sliding_window", "index_topk", "num_experts_per_tok", "vocab_size"}) {
    const auto it = config.find(key);
    if (it != config.end() && it->is_number())
      out += fmt::format("{}{} {}", out.empty() ? "" : ", ", key, it->dump());
  }
  return out;
}

}  // namespace

void say_coverage(Result& r, const Request& request) {
  const Structure& s = r.after;
  std::map<Pair, std::vector<std::int64_t>> by_pair;
  const auto total = s.layers() + static_cast<std::int64_t>(s.draft.size());
  for (std::int64_t id = 0; id < total; ++id) by_pair[s.pair_of(id)].push_back(id);
  for (const auto& [pair, ids] : by_pair)
    r.covers.push_back(fmt::format("{} ({}): layer{} {}", pair.first.text(), to_string(pair.second),
                                   ids.size() == 1 ? "" : "s", fmt::join(ids, ", ")));
  r.covers.push_back("widths and limits as they are: " + limits_of(r.config));
  const bool fewer = r.before.experts.count != r.after.experts.count;
  r.covers.push_back(
      fmt::format("every phase but the reading of weights: bootstrap, load of the structure, "
                  "profile, kv, warmup, "
                  "capture, ready, serve; the same shapes a layer{}, and so the same compile keys",
                  fewer ? " but for the number of experts" : ""));
  if (!s.taps.empty())
    r.covers.push_back(fmt::format("a drafter fed from {} of the target ({}: {})",
                                   plural(s.taps.size(), "layer"), s.taps_key,
                                   fmt::join(s.taps, ", ")));

  r.cannot_show = {
      "memory: bytes of weights, KV capacity and concurrency, peaks, graph memory are those of a "
      "model of other size",
      "time: of loading, of a start, of a token; only ratios between two starts of this same "
      "folder",
      "accuracy: weights are random, so logits, log probabilities and texts mean nothing",
      "weight files: their names, sharding, scales and formats are never read",
  };
  if (!s.draft.empty())
    r.cannot_show.push_back(
        "accepted drafts: with random weights about none are, and any number of them proves "
        "nothing");
  if (fewer)
    r.cannot_show.push_back(fmt::format(
        "kernels chosen by the number of experts ({} instead of {}), their tables and load "
        "balance; --experts {} keeps the number where it fits",
        r.after.experts.count, r.before.experts.count, r.before.experts.count));
  if (r.before.layers() != s.layers())
    r.cannot_show.push_back(fmt::format(
        "what depends on {} layers instead of {}: sizes of KV groups, stages of a pipeline, "
        "ids from {} on",
        r.before.layers(), s.layers(), s.layers()));
  if (!request.tokenizer_stub)
    r.cannot_show.push_back("the tokenizer: requests are token ids (--tokenizer stub for texts)");
  else
    r.cannot_show.push_back("the tokenizer: a stub that knows single bytes");

  r.gates.push_back("outcome passed, each phase reached, no contract broken");
  if (!s.draft.empty()) {
    r.gates.push_back("drafts > 0");
    r.gates.push_back(
        "counters consistent: accepted per position sum to accepted, accepted <= draft tokens");
    r.gates.push_back("never accepted > 0, never text equal with and without drafts");
  } else {
    r.gates.push_back("never the text of an answer");
  }
}

}  // namespace warmgate::plan::shrink
