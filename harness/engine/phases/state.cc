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
constexpr const char* kWhat = "step_inputs";
constexpr const char* kValues = "-1 and NaN, large values, 0 in turn";
}  // namespace

// Its logits, digested; empty if there is no room for the request.
std::string SpoiledContents::probe() {
  const auto& limits = s_.config.limits;
  const std::int64_t prompt =
      std::min({s_.speculative() + 2, limits.max_num_batched_tokens, limits.max_model_len - 1});
  if (prompt < 1 || !s_.model->grow_request(0, prompt + 1)) return {};
  std::vector<std::int64_t> ids;
  for (std::int64_t p = 0; p < prompt; ++p) ids.push_back(s_.model->sample(0, p));
  std::uint64_t digest = 0;
  s_.model->digest_logits(&digest);
  Batch batch;
  batch.requests.push_back({0, 0, prompt, ids});
  s_.step(batch, false);
  std::string out = fmt::format("{:016x}", digest);
  const std::int64_t next = s_.model->sampled().front();
  batch.requests.front() = {0, prompt, 1, std::span(&next, 1)};
  s_.step(batch, false);
  out += fmt::format(" {:016x}", digest);
  s_.model->digest_logits(nullptr);
  s_.model->release_request(0);
  return out;
}

void SpoiledContents::begin() {
  if (!s_.model->executes() || s_.config.checks.numerics == "off") return;
  before_ = probe();
  if (before_.empty()) return;
  trace::Line line("poisoned");
  line.str("what", kWhat).str("value", kValues).str("status", "begin");
  s_.recorder.send(line.str("phase", s_.recorder.phase()));
  s_.spoils = true;
}

void SpoiledContents::end() {
  if (before_.empty()) return;
  s_.spoils = false;
  trace::Line line("poisoned");
  line.str("what", kWhat).str("value", kValues).str("status", "end");
  line.str("before", before_).str("after", probe());
  s_.recorder.send(line.str("phase", s_.recorder.phase()));
}

}  // namespace warmgate::engine::phases
