// For tests: models of the DeepSeek-V4 family as resolved values, and a rank whose events can be
// read back.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "harness/engine/context.h"
#include "harness/engine/memory/device_memory.h"
#include "harness/engine/memory/workspace.h"
#include "harness/engine/model.h"
#include "harness/scenario/seams.h"
#include "kernels/jit/jit.h"

namespace warmgate::engine::testing {

inline std::map<std::string, std::string> default_seams() {
  std::map<std::string, std::string> out;
  for (const auto& seam : scenario::seams()) out[std::string(seam.name)] = seam.values.front();
  return out;
}

/// The first device that does not only account.
inline std::string executing_device() {
  for (const std::string_view name : device_names()) {
    if (device_named(name).executes()) return std::string(name);
  }
  throw std::runtime_error("no device executes");
}

/// [0,0] + [4,128]*20 + [4,0,0,0], 43 layers, with the DSpark drafter of three.
inline scenario::Resolved flash(bool drafter = true) {
  scenario::Resolved r;
  auto& m = r.model;
  m.name = "flash";
  m.hidden_size = 4096;
  m.num_hidden_layers = 43;
  m.num_attention_heads = 64;
  m.q_lora_rank = 1024;
  m.o_groups = 8;
  m.o_lora_rank = 1024;
  m.n_routed_experts = 256;
  m.num_experts_per_tok = 6;
  m.n_shared_experts = 1;
  m.moe_intermediate_size = 2048;
  m.num_hash_layers = 3;
  m.num_nextn_predict_layers = 1;
  m.compress_ratios = {0, 0};
  for (int i = 0; i < 20; ++i) m.compress_ratios.insert(m.compress_ratios.end(), {4, 128});
  m.compress_ratios.insert(m.compress_ratios.end(), {4, 0, 0, 0});
  r.limits.max_model_len = 1048576;
  r.limits.max_num_batched_tokens = 8192;
  r.limits.max_num_seqs = 1024;
  r.limits.device_memory_bytes = 576'000'000'000;
  r.limits.kv_pool_bytes = 95'007'340'800;
  r.architectures = {"sm_90a"};
  r.seams = default_seams();
  r.seed = 7;
  if (drafter) {
    auto& d = r.drafter;
    d.method = "dspark";
    d.num_speculative_tokens = 7;
    d.block_size = 5;
    d.layers = 3;
    d.markov_rank = 256;
    d.target_layer_ids = {40, 41, 42};
  }
  return r;
}

/// [128,128] + [4,128]*29 + [4,0], 61 layers.
inline scenario::Resolved pro() {
  scenario::Resolved r = flash(false);
  auto& m = r.model;
  m.name = "pro";
  m.hidden_size = 7168;
  m.num_hidden_layers = 61;
  m.num_attention_heads = 128;
  m.q_lora_rank = 1536;
  m.o_groups = 16;
  m.index_topk = 1024;
  m.n_routed_experts = 384;
  m.moe_intermediate_size = 3072;
  m.compress_ratios = {128, 128};
  for (int i = 0; i < 29; ++i) m.compress_ratios.insert(m.compress_ratios.end(), {4, 128});
  m.compress_ratios.insert(m.compress_ratios.end(), {4, 0});
  return r;
}

/// Flash's layers with these ratios, and limits that run in an instant.
inline scenario::Resolved small(std::vector<std::int64_t> ratios, std::int64_t length = 8192,
                                std::int64_t tokens = 512, std::int64_t seqs = 16) {
  scenario::Resolved r = flash(false);
  r.model.name = "small";
  r.model.num_hidden_layers = static_cast<std::int64_t>(ratios.size());
  r.model.compress_ratios = std::move(ratios);
  r.model.n_routed_experts = 8;
  r.limits.max_model_len = length;
  r.limits.max_num_batched_tokens = tokens;
  r.limits.max_num_seqs = seqs;
  r.limits.kv_pool_bytes.reset();
  return r;
}

inline void add_drafter(scenario::Resolved& r, const std::string& method, std::int64_t n) {
  r.drafter.method = method;
  r.drafter.num_speculative_tokens = n;
  r.drafter.block_size = n;
  r.drafter.layers = method == "dspark" ? 3 : 1;
  r.drafter.markov_rank = method == "dspark" ? 256 : 0;
  if (method == "dspark") r.drafter.target_layer_ids = {0};
}

/// One rank on its own, with its events in memory.
class Rank {
 public:
  explicit Rank(scenario::Resolved config_in, int lanes = 1,
                std::unique_ptr<Collectives> collectives_in = make_local_collectives())
      : config(std::move(config_in)),
        fd_(memfd_create("events", MFD_CLOEXEC)),
        recorder(writer_),
        memory(config.limits.device_memory_bytes, recorder, device_named(config.device)),
        workspace(memory, recorder, lanes),
        collectives(std::move(collectives_in)),
        compiler({{}, jit::Backend::kHost}),
        kernels(config, recorder, compiler),
        context{config, recorder, memory, workspace, *collectives, kernels} {
    writer_.open_descriptor(fd_);
  }
  ~Rank() { close(fd_); }

  /// Runs `work` inside a phase; phase_end is sent also when it throws.
  template <class Work>
  void phase(const char* name, Work&& work) {
    recorder.phase_begin(name);
    memory.begin_phase();
    trace::Line extra("phase_end");
    try {
      work();
    } catch (...) {
      memory.end_phase(extra);
      recorder.phase_end("failed", &extra);
      throw;
    }
    memory.end_phase(extra);
    recorder.phase_end("ok", &extra);
  }

  /// Load, profile at the limits, and the KV cache.
  EngineModel& start(std::int64_t pool_bytes = 0) {
    const auto& limits = config.limits;
    phase("load", [&] {
      model_ = std::make_unique<EngineModel>(context);
      model_->load_target();
      model_->load_draft();
      model_->announce_layers();
    });
    phase("profile", [&] {
      model_->profile_forward(limits.max_num_batched_tokens,
                              std::min(limits.max_num_batched_tokens, limits.max_num_seqs));
    });
    phase("kv", [&] {
      if (pool_bytes == 0) pool_bytes = limits.kv_pool_bytes.value_or(20'000'000'000);
      plan = model_->plan_kv(pool_bytes);
      model_->init_kv(plan);
    });
    return *model_;
  }
  EngineModel& model() { return *model_; }

  std::vector<nlohmann::json> events(const std::string& ev = "") const {
    std::string text;
    char buffer[1 << 16];
    for (off_t at = 0;;) {
      const ssize_t n = pread(fd_, buffer, sizeof buffer, at);
      if (n <= 0) break;
      text.append(buffer, static_cast<std::size_t>(n));
      at += n;
    }
    std::vector<nlohmann::json> out;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      auto event = nlohmann::json::parse(line);
      if (ev.empty() || event["ev"] == ev) out.push_back(std::move(event));
    }
    return out;
  }

  const scenario::Resolved config;

 private:
  int fd_;
  trace::EventWriter writer_;

 public:
  Recorder recorder;
  DeviceMemory memory;
  Workspace workspace;
  std::unique_ptr<Collectives> collectives;
  jit::Compiler compiler;
  KernelSet kernels;
  Context context;
  KvPlan plan;

 private:
  std::unique_ptr<EngineModel> model_;
};

}  // namespace warmgate::engine::testing
