// Figures, not tests: how fast logs are read, and in how much memory. Prints one table; `--json
// FILE` writes the same as JSON.
//   build/bin/bench_explain [--json FILE] [--gigabytes N]
// serving: 95 % lines of a server at work. dense: start-up logs alone, where most lines say
// something. long: N GB (2 by default) of the serving log in one go, for the peak memory.
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/explain/reader.h"

namespace {

namespace fs = std::filesystem;
using warmgate::explain::Grammars;
using warmgate::explain::Reader;
using warmgate::explain::Reading;

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Of this process: the same on a machine that does something else beside.
double cpu_s() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

double peak_rss_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

std::string slurp(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// What a vLLM server writes while it works: access lines and a line of figures every ten seconds.
std::string serving_lines(std::size_t bytes) {
  std::string out;
  for (unsigned i = 0; out.size() < bytes; ++i) {
    char line[400];
    std::snprintf(line, sizeof line,
                  "(APIServer pid=11) INFO:     10.0.%u.%u:%u - \"POST /v1/chat/completions "
                  "HTTP/1.1\" 200 OK\n",
                  i % 256, i / 7 % 256, 30000 + i % 30000);
    out += line;
    if (i % 8 != 7) continue;
    std::snprintf(line, sizeof line,
                  "(APIServer pid=11) INFO 07-02 %02u:%02u:%02u [loggers.py:257] Engine 000: Avg "
                  "prompt throughput: %u.%u tokens/s, Avg generation throughput: %u.1 tokens/s, "
                  "Running: %u reqs, Waiting: 0 reqs, GPU KV cache usage: %u.3%%, Prefix cache hit "
                  "rate: 12.5%%\n",
                  9 + i / 3600 % 12, i / 60 % 60, i % 60, 1000 + i % 977, i % 10, 400 + i % 311,
                  i % 64, i % 100);
    out += line;
  }
  return out;
}

struct Measured {
  double seconds = 0, cpu_seconds = 0;
  std::size_t bytes = 0;
  Reading reading;
};

// Fed in pieces as explain and a live server do.
Measured read(const Grammars& grammars, const std::string& text, std::size_t bytes) {
  Measured out;
  Reader reader(grammars);
  const int source = reader.add_source("bench");
  const double begin = now_s(), cpu_begin = cpu_s();
  constexpr std::size_t kPiece = 1 << 20;
  while (out.bytes < bytes) {
    for (std::size_t at = 0; at < text.size() && out.bytes < bytes; at += kPiece) {
      const std::string_view piece = std::string_view(text).substr(at, kPiece);
      reader.feed(source, piece);
      out.bytes += piece.size();
    }
  }
  out.reading = reader.finish();
  out.seconds = now_s() - begin;
  out.cpu_seconds = cpu_s() - cpu_begin;
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  std::string json_file;
  double gigabytes = 2;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg == "--json" && i + 1 < argc) {
      json_file = argv[++i];
    } else if (arg == "--gigabytes" && i + 1 < argc) {
      gigabytes = std::atof(argv[++i]);
    } else {
      std::fprintf(stderr, "usage: bench_explain [--json FILE] [--gigabytes N]\n");
      return 2;
    }
  }
  if (!warmgate::explain::available()) {
    std::fprintf(stderr, "bench: %s\n", warmgate::explain::availability().c_str());
    return 1;
  }
  const fs::path root = WARMGATE_BENCH_SOURCE_DIR;
  const Grammars grammars = Grammars::standard(root / "fixtures");
  const std::string startup = slurp(root / "fixtures/logs/01-vllm-healthy-tp2-cold.log");
  if (startup.empty()) {
    std::fprintf(stderr, "bench: no sample logs under %s\n", (root / "fixtures/logs").c_str());
    return 1;
  }
  // 5 % of the lines are of starts; a server that is started again and again.
  const auto lines = static_cast<std::size_t>(std::count(startup.begin(), startup.end(), '\n'));
  std::string serving, dense;
  while (serving.size() < (64u << 20)) {
    serving += startup;
    const std::string work = serving_lines(lines * 19 * 130);
    std::size_t at = 0;
    for (std::size_t n = 0; n < lines * 19 && at != std::string::npos; ++n)
      at = work.find('\n', at + 1);
    serving += work.substr(0, at + 1);
  }
  while (dense.size() < (32u << 20)) dense += startup;

  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  std::printf("%-10s %10s %9s %9s %14s %9s  %s\n", "log", "MB", "s", "MB/s", "MB per CPU s",
              "at least", "not placed");
  const auto row = [&](const char* name, const Measured& m, double floor) {
    const double mb = static_cast<double>(m.bytes) / 1e6;
    const double rate = mb / m.seconds, cpu_rate = mb / m.cpu_seconds;
    const double lost = static_cast<double>(m.reading.unplaced) /
                        std::max<double>(1, static_cast<double>(m.reading.lines));
    std::printf("%-10s %10.1f %9.2f %9.0f %14.0f %9.0f  %.1f %% of the lines\n", name, mb,
                m.seconds, rate, cpu_rate, floor, lost * 100);
    json.push_back({{"log", name},
                    {"mb", mb},
                    {"seconds", m.seconds},
                    {"mb_per_s", rate},
                    {"mb_per_cpu_s", cpu_rate},
                    {"floor_mb_per_s", floor},
                    {"not_placed", lost}});
  };
  row("serving", read(grammars, serving, serving.size()), 200);
  row("dense", read(grammars, dense, dense.size()), 100);
  const double before = peak_rss_mib();
  const Measured all = read(grammars, serving, static_cast<std::size_t>(gigabytes * 1e9));
  row("long", all, 200);
  const double after = peak_rss_mib();
  std::printf(
      "peak memory %.1f MiB, of which %.1f MiB are the log at hand; %.1f MiB more than "
      "before the long log\n",
      after, static_cast<double>(serving.size() + dense.size()) / (1 << 20), after - before);
  json.push_back({{"log", "memory"}, {"peak_rss_mib", after}, {"grown_mib", after - before}});
  if (!json_file.empty()) std::ofstream(json_file) << json.dump(2) << "\n";
  return 0;
}
