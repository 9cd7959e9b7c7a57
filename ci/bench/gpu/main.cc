// warmgate-bench [--quick] [--json FILE] [--only TEXT]: exit 0 measured, 2 bad usage, 3 no GPU.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "ci/bench/gpu/bench.h"

namespace {

using namespace warmgate;
using bench::Result;

constexpr int kBadUsage = 2, kNoGpu = 3;

nlohmann::json to_json(const Result& r) {
  nlohmann::json out = {{"name", r.name},
                        {"median_us", r.time.median_us},
                        {"fastest_us", r.time.fastest_us},
                        {"slowest_us", r.time.slowest_us},
                        {"repeats", r.time.repeats}};
  const double seconds = r.time.median_us * 1e-6;
  if (r.bytes > 0) out["gb_s"] = r.bytes / seconds * 1e-9;
  if (r.flops > 0) out["tflop_s"] = r.flops / seconds * 1e-12;
  if (r.bytes > 0) out["bytes"] = r.bytes;
  if (r.flops > 0) out["flops"] = r.flops;
  if (r.reference_us > 0) out["reference_us"] = r.reference_us;
  if (r.must_us > 0) out["must_us"] = r.must_us;
  if (r.aim_us > 0) out["aim_us"] = r.aim_us;
  if (!r.peer.empty()) out["peer"] = r.peer;
  if (!r.note.empty()) out["note"] = r.note;
  return out;
}

const char* standing(const Result& r) {
  if (r.must_us <= 0) return "";
  if (r.aim_us > 0 && r.time.median_us <= r.aim_us) return "aim";
  return r.time.median_us <= r.must_us ? "must" : "short";
}

void print(const Result& r) {
  const double seconds = r.time.median_us * 1e-6;
  fmt::print("{:<52} {:>10.1f} us", r.name, r.time.median_us);
  if (r.flops > 0) fmt::print(" {:>7.0f} TFLOP/s", r.flops / seconds * 1e-12);
  if (r.bytes > 0) fmt::print(" {:>7.0f} GB/s", r.bytes / seconds * 1e-9);
  if (r.reference_us > 0) fmt::print("  {:.2f}x {}", r.time.median_us / r.reference_us, r.peer);
  fmt::print("  {}{}{}\n", standing(r), r.note.empty() ? "" : "  ", r.note);
  std::fflush(stdout);
}

/// Says why not. Asked by a process of its own: this one is no client of the GPU while start-ups
/// are timed.
bool has_gpu() {
  const pid_t child = fork();
  if (child == 0) {
    int devices = 0;
    const cudaError_t error = cudaGetDeviceCount(&devices);
    if (error == cudaSuccess && devices > 0) _exit(0);
    fmt::print(stderr, "warmgate-bench: nothing measured, no GPU: {}\n", cudaGetErrorString(error));
    std::fflush(stderr);
    _exit(kNoGpu);
  }
  int status = 1;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

}  // namespace

int main(int argc, char** argv) {
  bool quick = false;
  std::string json_file, only;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    const bool more = i + 1 < argc;
    if (arg == "--quick") {
      quick = true;
    } else if (arg == "--json" && more) {
      json_file = argv[++i];
    } else if (arg == "--only" && more) {
      only = argv[++i];
    } else {
      fmt::print(stderr, "usage: warmgate-bench [--quick] [--json FILE] [--only TEXT]\n");
      return arg == "--help" ? 0 : kBadUsage;
    }
  }
  if (!has_gpu()) return kNoGpu;
  bench::Bench bench(quick);
  // Start-up first: its processes have the GPU to themselves until this one opens it.
  std::vector<bench::Case> cases = bench::startup_cases();
  for (const auto& more : {bench::ceiling_cases(), bench::cache_cases(), bench::decode_cases(),
                           bench::prefill_cases(), bench::indexer_cases(), bench::gemm_cases()})
    cases.insert(cases.end(), more.begin(), more.end());
  nlohmann::json failures = nlohmann::json::array();
  for (const bench::Case& c : cases) {
    if (!only.empty() && std::string(c.name).find(only) == std::string::npos &&
        std::strcmp(c.name, "ceilings") != 0)
      continue;
    const std::size_t before = bench.results().size();
    try {
      c.run(bench);
    } catch (const std::exception& e) {
      fmt::print("{:<52} not measured: {}\n", c.name, e.what());
      failures.push_back({{"name", c.name}, {"why", e.what()}});
    }
    for (std::size_t i = before; i < bench.results().size(); ++i) print(bench.results()[i]);
  }
  if (!json_file.empty()) {
    cudaDeviceProp properties{};
    cudaGetDeviceProperties(&properties, 0);
    nlohmann::json out = {{"schema", "gpu-bench/1.0"}, {"device", properties.name}};
    out["multiprocessors"] = properties.multiProcessorCount;
    out["ceilings"] = {{"copy_gb_s", bench.ceilings.copy_gb_s},
                       {"row_gather_gb_s", bench.ceilings.row_gather_gb_s},
                       {"bf16_tflop_s", bench.ceilings.bf16_tflop_s}};
    out["results"] = nlohmann::json::array();
    for (const Result& r : bench.results()) out["results"].push_back(to_json(r));
    out["not_measured"] = failures;
    std::ofstream file(json_file);
    file << out.dump(2) << "\n";
    if (!file) {
      fmt::print(stderr, "warmgate-bench: cannot write {}\n", json_file);
      return kBadUsage;
    }
  }
  return 0;
}
