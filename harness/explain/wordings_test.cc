// The same facts in the words of other releases, and failures that no sample shows.
#include "harness/explain/test_logs.h"

namespace warmgate::explain {
namespace {

#define NEEDS_RE2() \
  if (!available()) GTEST_SKIP() << availability()

struct Wording {
  std::string line, figure;
  nlohmann::json value;
};

void expect_wordings(const std::string& engine, const std::string& prefix,
                     const std::vector<Wording>& wordings) {
  for (const Wording& wording : wordings) {
    Reader reader(grammars(), {engine});
    const int source = reader.add_source("log");
    reader.feed(source, prefix + wording.line + "\n");
    const Reading reading = reader.finish();
    EXPECT_EQ(reading.unplaced, 0) << wording.line;
    if (wording.figure.empty()) continue;
    ASSERT_EQ(reading.figures.count(wording.figure), 1u) << wording.line;
    EXPECT_EQ(reading.figures.at(wording.figure), wording.value) << wording.line;
  }
}

TEST(Wordings, OfVllm) {
  NEEDS_RE2();
  expect_wordings(
      "vllm", "(Worker_TP0 pid=3) INFO 07-02 09:00:01 [x.py:1] ",
      {{"Model loading took 7.1250 GB and 9.310224 seconds", "weights_gib", 7.125},
       {"Loading model weights took 5.7901 GB", "weights_gib", 5.7901},
       {"torch.compile and initial profiling/warmup run together took 31.5 s in total",
        "compile_seconds", 31.5},
       {"GPU KV cache size: 1,024 tokens, Maximum concurrency for 512 tokens per request: 2.00x",
        "concurrency", 2.0},
       {"GPU KV cache size: 1,024 tokens, Maximum concurrency for 512 tokens per request: 2.00x",
        "kv_tokens", 1024},
       {"Available KV cache memory: -2.41 GiB", "kv_gib", -2.41},
       {"# cuda blocks: 100, # CPU blocks: 5", "kv_tokens", 1600},
       {"init engine (profile, create kv cache, warmup model) took 91.37 seconds",
        "init_engine_seconds", 91.37},
       {"Memory profiling takes 3.50 seconds", "profile_seconds", 3.5},
       {"the current vLLM instance can use total_gpu_memory (79.10GiB) x gpu_memory_utilization "
        "(0.90) = 71.19GiB",
        "limit_gib", 71.19},
       {"model weights take 14.99GiB; non_torch_memory takes 0.09GiB; PyTorch activation peak "
        "memory takes 1.23GiB; the rest of the memory reserved for KV Cache is 54.88GiB.",
        "activation_gib", 1.23},
       {"Initial free memory 78.6 GiB, reserved 10.0 GiB memory for KV Cache as specified by "
        "kv_cache_memory_bytes config and skipped memory profiling.",
        "kv_gib", 10.0},
       {"Initial free memory: 78.60 GiB; Requested memory: 0.900000 (util), 71.19 GiB",
        "requested_gib", 71.19},
       {"Free memory on device (31.23/31.86 GiB) on startup. Desired GPU memory utilization is "
        "(0.97, 30.9 GiB). Actual usage is 24.58 GiB for consumed memory (weights + non-torch)",
        "requested_gib", 30.9},
       {"Skipping FlashInfer autotune because it is disabled.", "skips", 1},
       {"Capturing cudagraphs for decoding.", "", nullptr},
       {"Directly load AOT compilation from path /root/x", "", nullptr}});
}

TEST(Wordings, OfSglang) {
  NEEDS_RE2();
  expect_wordings(
      "sglang", "[2026-03-10 16:21:22 TP0] ",
      {{"Load weight end. elapsed=12.50 s, type=A, dtype=torch.bfloat16, quant=fp8, avail mem=1.00 "
        "GB, mem usage=15.10 GB.",
        "weights_gib", 15.1},
       {"KV Cache is allocated. dtype: torch.bfloat16, #tokens: 500, KV size: 12.50 GB", "kv_gib",
        12.5},
       {"Mamba Cache is allocated. max_mamba_cache_size: 64, conv_state size: 0.25GB, ssm_state "
        "size: 3.00GB",
        "state_gib", 3.25},
       {"Capture cuda graph end. Time elapsed: 4.00 s. avail mem=9.00 GB. mem usage=1.50 GB.",
        "capture_gib", 1.5},
       {"Capture target CUDA graph end. elapsed=4.50 s, mem usage=1.25 GB", "capture_seconds", 4.5},
       {"Capture draft cuda graph end. Time elapsed: 2.50 s. mem usage=0.50 GB. avail mem=9.00 GB.",
        "draft_capture_seconds", 2.5}});
  expect_wordings("sglang", "[16:21:22 TP0] ",
                  {{"Memory pool end. avail mem=11.60 GB", "", nullptr}});
}

TEST(Wordings, OfLlamaCpp) {
  NEEDS_RE2();
  expect_wordings(
      "llamacpp", "",
      {{"llm_load_tensors:      CUDA0 buffer size =  4095.05 MiB", "weights_mib", 4095.05},
       {"llama_new_context_with_model: KV self size  =  256.00 MiB, K (f16):  128.00 MiB, V (f16): "
        " 128.00 MiB",
        "kv_mib", 256.0},
       {"llama_kv_cache_unified: size =  512.00 MiB (  4096 cells,  32 layers,  1/1 seqs), K "
        "(f16):  256.00 MiB, V (f16):  256.00 MiB",
        "kv_cells", 4096},
       {"llama_new_context_with_model:      CUDA0 compute buffer size =   560.00 MiB",
        "compute_mib", 560.0}});
  expect_wordings("llamacpp", "0.04.200.000 I ",
                  {{"srv    load_model: initializing slots, n_slots = 8", "slots", 8},
                   {"main: server is listening on http://0.0.0.0:1", "seconds_since_start", 4.2}});
}

TEST(Wordings, OfTheOthers) {
  NEEDS_RE2();
  expect_wordings(
      "trtllm", "[01/15/2026-07:00:02] [TRT-LLM] [RANK 1] [I] ",
      {{"Rank 1 uses 16.06 GB for model weights.", "weights_gb", 16.06},
       {"[Autotuner]: Autotuning process starts ...", "", nullptr},
       {"Run generation only CUDA graph warmup for batch size=4", "last_graph_batch", 4}});
  expect_wordings("lmdeploy", "2025-04-01 10:00:00,123 - lmdeploy - INFO - turbomind.py:1 - ",
                  {{"get 291 model params", "params", 291},
                   {"Engine warmup completed in 12.5 seconds.", "warmup_seconds", 12.5}});
  expect_wordings("lmdeploy", "[TM][INFO] ",
                  {{"[BlockManager] max_block_count = 100", "kv_tokens", 6400},
                   {"[Gemm2] Tuning finished in 8.25 seconds.", "autotune_seconds", 8.25}});
  expect_wordings("tgi", "2025-01-20T09:00:44.000000Z  INFO text_generation_launcher: ",
                  {{"KV-cache blocks: 100, size: 16", "kv_tokens", 1600}});
}

std::string lines(const std::string& prefix, const std::vector<std::string>& messages) {
  std::string out;
  for (const std::string& message : messages) out += prefix + message + "\n";
  return out;
}

TEST(Failures, MemoryThatSomebodyElseHolds) {
  NEEDS_RE2();
  const Reading reading =
      read_log(lines("(EngineCore pid=5) ERROR 07-02 09:00:01 [core.py:9] ",
                     {"EngineCore failed to start.", "Traceback (most recent call last):",
                      "  File \"/x/vllm/v1/worker/gpu_worker.py\", line 5, in init_device",
                      "    raise ValueError(",
                      "ValueError: Free memory on device cuda:0 (10.5/79.2 GiB) on startup is less "
                      "than desired GPU "
                      "memory utilization (0.9, 71.28 GiB). Decrease GPU memory utilization."}));
  EXPECT_EQ(reading.outcome, "crashed");
  EXPECT_EQ(reading.failing_phase, "bootstrap");
  EXPECT_EQ(reading.failing_worker, "EngineCore");
  EXPECT_EQ(reading.fingerprint->type, "ValueError: Free memory on device");
  EXPECT_EQ(reading.figures.at("free_gib"), 10.5);
  EXPECT_EQ(reading.figures.at("wanted_gib"), 71.28);
}

TEST(Failures, AnEchoIsNeverTheRoot) {
  NEEDS_RE2();
  const Reading reading = read_log(
      "(APIServer pid=9) RuntimeError: Engine core initialization failed. See root cause above. "
      "Failed core proc(s): {'EngineCore_DP0': -9}\n");
  EXPECT_EQ(reading.outcome, "crashed");
  EXPECT_EQ(reading.failing_worker, std::nullopt);
  EXPECT_EQ(reading.fingerprint, std::nullopt);
}

TEST(Failures, WhatWasRecoveredFromIsNoFailure) {
  NEEDS_RE2();
  std::string text = sample("10-llamacpp-healthy-hybrid");
  const std::string at = "sched_reserve:      CUDA0 compute buffer size";
  text.insert(text.find(at),
              "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 900.00 MiB on device 0: "
              "cudaMalloc failed: out of memory\n"
              "sched_reserve: compute buffer allocation failed, retrying without pipeline "
              "parallelism\n");
  const Reading reading = read_log(text);
  EXPECT_EQ(reading.outcome, "passed");
  EXPECT_EQ(reading.failing_phase, std::nullopt);
  EXPECT_GE(reading.moment_counts.at("swallowed"), 1);
}

TEST(Failures, TwoRanksInTheSameSecondAreBothNamed) {
  NEEDS_RE2();
  std::string text;
  for (const char* rank : {"1", "0"}) {
    text += lines("(VllmWorker rank=" + std::string(rank) + " pid=4" + rank +
                      ") ERROR 05-12 11:01:11 [m.py:4] ",
                  {"WorkerProc hit an exception: %s", "Traceback (most recent call last):",
                   "  File \"/x/vllm/a.py\", line 1, in profile_run",
                   "RuntimeError: boom in " + std::string(rank)});
  }
  const Reading reading = read_log(text);
  EXPECT_EQ(reading.failing_worker, "rank=1");
  EXPECT_EQ(reading.failing_rank, 1);
  EXPECT_EQ(reading.failing_phase, "profile");
  EXPECT_EQ(reading.failing_workers, (std::vector<std::string>{"rank=1", "rank=0"}));
}

TEST(Failures, InterleavedTracebacksAreToldApartByTheirPrefix) {
  NEEDS_RE2();
  const std::string a = "(Worker_TP0 pid=1) ERROR 07-02 09:00:01 [m.py:4] ";
  const std::string b = "(Worker_TP1 pid=2) ERROR 07-02 09:00:02 [m.py:4] ";
  const std::string text =
      b + "WorkerProc hit an exception.\n" + b + "Traceback (most recent call last):\n" + a +
      "WorkerProc hit an exception.\n" + a + "Traceback (most recent call last):\n" + b +
      "  File \"/x/vllm/second.py\", line 1, in load_model\n" + a +
      "  File \"/x/vllm/first.py\", line 1, in capture_model\n" + a + "KeyError: 'a'\n" + b +
      "AssertionError\n";
  const Reading reading = read_log(text);
  EXPECT_EQ(reading.failing_worker, "Worker_TP1");
  EXPECT_EQ(reading.fingerprint->type, "AssertionError");
  EXPECT_EQ(reading.fingerprint->file, "second.py");
  EXPECT_EQ(reading.failing_phase, "load");
}

TEST(Failures, TheShellsWordIsAllThatIsLeftOfAKill) {
  NEEDS_RE2();
  std::string text = sample("01-vllm-healthy-tp2-cold");
  text = text.substr(0, text.find("(Worker_TP0 pid=31) INFO 07-02 09:00:53 [decorators"));
  EXPECT_EQ(read_log(text).outcome, "incomplete");
  const Reading killed = read_log(text + "Killed\n");
  EXPECT_EQ(killed.outcome, "crashed");
  EXPECT_EQ(killed.fingerprint->type, "Killed");
  EXPECT_EQ(killed.failing_phase, "profile");
  Ending ending;
  ending.signal = 9;
  const Reading known = read_log(text, 0, ending);
  EXPECT_EQ(known.outcome, "crashed");
  EXPECT_EQ(known.fingerprint->type, "signal 9");
  EXPECT_EQ(known.failing_phase, "profile");
}

TEST(Failures, ADeadlineIsAHangAndACompilerIsPatientlyWaitedFor) {
  NEEDS_RE2();
  std::string text = sample("06-vllm-hang-after-kv");
  const std::string compiling = text.substr(0, text.find("(VllmWorker rank=0"));
  const std::string waits =
      "DEBUG 04-20 10:04:05 [shm_broadcast.py:430] No available block found in 60 second.\n";
  const Reading patient = read_log(
      "(VllmWorker rank=0 pid=51) INFO 04-20 10:00:01 [b.py:1] Dynamo bytecode transform time: "
      "5.31 s\n" +
      compiling + waits);
  EXPECT_EQ(patient.outcome, "incomplete");
  Ending ending;
  ending.deadline = true;
  EXPECT_EQ(read_log(compiling + waits, 0, ending).outcome, "hung");
}

TEST(Failures, TheRankThatNeverSpokeIsTheCulprit) {
  NEEDS_RE2();
  std::string text = sample("08-sglang-load-victim-rank");
  const std::string silent = "[2025-04-30 22:10:00 TP2] Load weight begin. avail mem=139.20 GB\n";
  text.erase(text.find(silent), silent.size());
  const Reading reading =
      read_log("[2025-04-30 22:09:00] server_args=ServerArgs(model_path='x', tp_size=4)\n" + text);
  EXPECT_EQ(reading.failing_worker, "TP2");
  EXPECT_EQ(reading.failing_rank, 2);
}

}  // namespace
}  // namespace warmgate::explain
