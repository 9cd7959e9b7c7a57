// Figures, not tests: the engine on device cpu, from its start to 16 tokens; which op takes the
// time, and how far it is from what memory can deliver (measured in the same run).
//   build/bin/bench_cpu [--rounds N] [--scenario FILE]
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "harness/scenario/scenario.h"
#include "harness/trace/event.h"
#include "harness/trace/wire.h"

extern char** environ;

namespace {

namespace fs = std::filesystem;
using warmgate::trace::now_ns;

// Bytes read and written a second by copying 256 MiB, `threads` at once; the best of five.
double copy_gb_s(int threads) {
  constexpr std::size_t kBytes = std::size_t{256} << 20;
  std::vector<std::vector<char>> from(static_cast<std::size_t>(threads)), to = from;
  for (auto& v : from) v.assign(kBytes / static_cast<std::size_t>(threads), 1);
  for (auto& v : to) v.assign(kBytes / static_cast<std::size_t>(threads), 2);
  double best = 0;
  for (int round = 0; round < 5; ++round) {
    const auto start = now_ns();
    std::vector<std::thread> all;
    for (std::size_t i = 0; i < from.size(); ++i)
      all.emplace_back([&, i] { std::memcpy(to[i].data(), from[i].data(), from[i].size()); });
    for (auto& thread : all) thread.join();
    best = std::max(best, 2.0 * kBytes / static_cast<double>(now_ns() - start));
  }
  return best;
}

struct Start {
  double ready_ms = -1, tokens_ms = -1;
  std::map<std::string, double> phase_ms;
  std::vector<warmgate::trace::Event> op_times;
};

Start start_engine(const fs::path& config, const fs::path& dir) {
  const fs::path events = dir / "events";
  fs::remove_all(events);
  fs::create_directory(events);
  setenv("WARMGATE_EVENTS_DIR", events.c_str(), 1);
  std::vector<std::string> words = {
      (fs::canonical("/proc/self/exe").parent_path() / "warmgate-engine").string(),
      "--config",
      config.string(),
      "--rank",
      "0",
      "--world",
      "1",
      "--kernel-cache",
      (dir / "cache").string()};
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const auto begin = now_ns();
  pid_t pid = 0;
  int status = -1;
  if (posix_spawn(&pid, argv[0], nullptr, nullptr, argv.data(), environ) != 0 ||
      waitpid(pid, &status, 0) != pid || status != 0) {
    std::fprintf(stderr, "bench_cpu: %s failed (status %d)\n", argv[0], status);
    std::exit(1);
  }
  Start out;
  for (const auto& entry : fs::directory_iterator(events)) {
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);) {
      const auto event = warmgate::trace::parse_event(line);
      const double ms = static_cast<double>(event.t_ns - begin) / 1e6;
      if (event.ev == "phase_begin") out.phase_ms[event.str("phase")] -= ms;
      if (event.ev == "phase_end") out.phase_ms[event.str("phase")] += ms;
      if (event.ev == "ready") out.ready_ms = ms;
      if (event.ev == "request") out.tokens_ms = ms;
      if (event.ev == "op_time") out.op_times.push_back(event);
    }
  }
  return out;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? -1 : values[values.size() / 2];
}

void op_table(const Start& start, const std::string& phase, double ceiling) {
  struct Use {
    double ns = 0, bytes = 0, flops = 0;
    std::int64_t calls = 0;
  };
  std::map<std::string, Use> by_kernel;
  double all = 0;
  for (const auto& event : start.op_times) {
    if (event.str("phase") != phase) continue;
    Use& use = by_kernel[event.str("kernel")];
    use.ns += event.real("ns");
    use.bytes += event.real("bytes");
    use.flops += event.real("flops");
    use.calls += event.num("calls");
    all += event.real("ns");
  }
  std::vector<std::pair<std::string, Use>> rows(by_kernel.begin(), by_kernel.end());
  std::sort(rows.begin(), rows.end(), [](auto& a, auto& b) { return a.second.ns > b.second.ns; });
  std::printf("\nops of phase %s, %.1f ms in all\n%-34s %6s %9s %7s %8s %9s %9s\n", phase.c_str(),
              all / 1e6, "kernel", "calls", "ms", "share", "GB/s", "of copy", "GFLOP/s");
  for (std::size_t i = 0; i < std::min<std::size_t>(rows.size(), 12); ++i) {
    const auto& [kernel, use] = rows[i];
    std::printf("%-34s %6lld %9.2f %6.1f%% %8.2f %8.1f%% %9.2f\n", kernel.c_str(),
                static_cast<long long>(use.calls), use.ns / 1e6, 100 * use.ns / all,
                use.bytes / use.ns, 100 * use.bytes / use.ns / ceiling, use.flops / use.ns);
  }
}

}  // namespace

int main(int argc, char** argv) {
  int rounds = 5;
  fs::path scenario = fs::path(WARMGATE_BENCH_SOURCE_DIR) / "ci/bench/scenarios/cpu.yaml";
  for (int i = 1; i < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--rounds" && i + 1 < argc && std::atoi(argv[i + 1]) > 0) {
      rounds = std::atoi(argv[i + 1]);
    } else if (option == "--scenario" && i + 1 < argc) {
      scenario = argv[i + 1];
    } else {
      const bool asked = option == "-h" || option == "--help";
      std::fprintf(asked ? stdout : stderr, "usage: bench_cpu [--rounds N] [--scenario FILE]\n");
      return asked ? 0 : 2;
    }
  }
  const std::string dir_name = (fs::temp_directory_path() / "warmgate-bench-cpu-XXXXXX").string();
  std::vector<char> name(dir_name.begin(), dir_name.end());
  name.push_back('\0');
  if (mkdtemp(name.data()) == nullptr) return 1;
  const fs::path dir(name.data());
  auto resolved = warmgate::scenario::load_scenario(scenario).variants.at(0).ranks.at(0);
  const double one = copy_gb_s(1), two = copy_gb_s(2);
  std::printf("copy ceiling: %.2f GB/s on one core, %.2f on two\n", one, two);
  for (const char* checks : {"sampled", "off"}) {
    resolved.checks.numerics = checks;
    const fs::path config = dir / (std::string(checks) + ".json");
    std::ofstream(config) << warmgate::scenario::to_json(resolved);
    std::vector<double> ready, tokens;
    Start last;
    for (int i = 0; i < rounds; ++i) {
      last = start_engine(config, dir);
      ready.push_back(last.ready_ms);
      tokens.push_back(last.tokens_ms);
    }
    std::printf("numerics %-8s start to ready %8.1f ms, to the last token %8.1f ms (limit 1000)\n",
                checks, median(ready), median(tokens));
    for (const auto& [phase, ms] : last.phase_ms) std::printf("  %s %.1f", phase.c_str(), ms);
    std::printf("  (ms, last round)\n");
    std::fflush(stdout);
  }
  setenv("WARMGATE_OP_TIMES", "1", 1);
  const Start start = start_engine(dir / "off.json", dir);
  for (const char* phase : {"profile", "warmup", "serve"}) op_table(start, phase, two);
  fs::remove_all(dir);
  return 0;
}
