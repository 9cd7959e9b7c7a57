#include "harness/engine/phases/state.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace warmgate::engine::phases {

void tell_state(Session& s, const char* at) {
  const EngineState state = s.model->state();
  std::vector<std::string> keeps = {"free_blocks", "held_blocks", "requests"};
  trace::Line line("state");
  line.str("at", at).str("phase", s.recorder.phase());
  line.num("free_blocks", state.free_blocks).num("held_blocks", state.held_blocks);
  line.num("requests", state.requests);
  if (state.null_block) {
    keeps.insert(keeps.end(), {"null_block", "kv_nan"});
    line.str("null_block", fmt::format("{:016x}", *state.null_block)).num("kv_nan", state.nan);
  }
  s.recorder.send(line.strings("keeps", keeps));
}

namespace {

/// What a request of a few tokens gives: its logits, digested. Empty if there is no room for it.
std::string probe(Session& s) {
  const auto& limits = s.config.limits;
  const std::int64_t prompt =
      std::min<std::int64_t>({5, limits.max_num_batched_tokens, limits.max_model_len - 1});
  if (prompt < 1 || !s.model->grow_request(0, prompt + 1)) return {};
  std::vector<std::int64_t> ids;
  for (std::int64_t p = 0; p < prompt; ++p) ids.push_back(s.model->sample(0, p));
  std::string out;
  std::uint64_t digest = 0;
  s.model->digest_logits(&digest);
  Batch batch;
  batch.requests.push_back({0, 0, prompt, ids});
  s.step(batch, false);
  out += fmt::format("{:016x}", digest);
  const std::int64_t next = s.model->sampled().front();
  batch.requests.front() = {0, prompt, 1, std::span(&next, 1)};
  s.step(batch, false);
  out += fmt::format(" {:016x}", digest);
  s.model->digest_logits(nullptr);
  s.model->release_request(0);
  return out;
}

// Decodes and a prefill, as far as the limits allow.
Batch spoiled_batch(const Session& s) {
  const auto& limits = s.config.limits;
  Batch batch;
  batch.dummy = true;
  const std::int64_t prefill = s.model->decode_threshold() + 1;
  batch.requests.push_back({0, limits.max_model_len - 1, 1});
  if (limits.max_num_seqs > 1 && limits.max_num_batched_tokens > prefill &&
      limits.max_model_len >= prefill)
    batch.requests.push_back({1, 0, prefill});
  return batch;
}

}  // namespace

void spoiled_steps(Session& s) {
  if (!s.model->executes()) return;
  const std::string before = probe(s);
  if (before.empty()) return;
  struct Poison {
    std::uint8_t byte;
    const char* text;
  };
  for (const Poison poison : {Poison{0x00, "0"}, {0xff, "-1, NaN"}, {0x7f, "large values"}}) {
    trace::Line begin("poisoned");
    begin.str("what", "step_inputs").str("value", poison.text).str("status", "begin");
    s.recorder.send(begin.str("phase", s.recorder.phase()));
    s.model->spoil(poison.byte);
    s.step(spoiled_batch(s), s.drafts());
    // A null block of zeros is what every step may rely on.
    s.model->clear_null_block();
    const std::string after = probe(s);
    trace::Line end("poisoned");
    end.str("what", "step_inputs").str("value", poison.text).str("status", "end");
    end.str("before", before).str("after", after);
    s.recorder.send(end.str("phase", s.recorder.phase()));
  }
}

}  // namespace warmgate::engine::phases
