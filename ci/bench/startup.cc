// Figures, not tests: what a verdict costs. Prints one table; `--json FILE` writes the same as
// JSON.
//   build/bin/bench_startup [--json FILE] [--rounds N]
// Every figure stands beside the floor or the limit it is held against, measured in the same run.
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "harness/run/run.h"
#include "harness/scenario/scenario.h"
#include "harness/trace/event.h"
#include "harness/trace/wire.h"

extern char** environ;

namespace {

namespace fs = std::filesystem;
using warmgate::trace::now_ns;

struct Child {
  double wall_ms = 0, cpu_ms = 0, ready_ms = -1, ready_cpu_ms = -1;
  int status = -1;
};

double ms(const timeval& t) {
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_usec) / 1e3;
}

// One process, its output thrown away, measured by wait4.
Child spawn(const std::vector<std::string>& argv) {
  std::vector<char*> args;
  for (const std::string& a : argv) args.push_back(const_cast<char*>(a.c_str()));
  args.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  Child child;
  const auto start = now_ns();
  pid_t pid = 0;
  if (posix_spawnp(&pid, args[0], &actions, nullptr, args.data(), environ) != 0) {
    std::fprintf(stderr, "bench: cannot start %s\n", args[0]);
    std::exit(1);
  }
  rusage usage{};
  wait4(pid, &child.status, 0, &usage);
  child.wall_ms = static_cast<double>(now_ns() - start) / 1e6;
  child.cpu_ms = ms(usage.ru_utime) + ms(usage.ru_stime);
  posix_spawn_file_actions_destroy(&actions);
  return child;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? -1 : values[values.size() / 2];
}

template <typename F>
double median_of(int rounds, F&& f) {
  std::vector<double> values;
  for (int i = 0; i < rounds; ++i) values.push_back(f());
  return median(values);
}

struct Row {
  std::string what;
  double value;
  std::string unit;
  double limit;  // the figure to stay under (or over)
  bool higher_better;
  std::string beside;  // the floor or ceiling of the same run
};

std::vector<Row> rows;

void row(std::string what, double value, std::string unit, double limit, bool higher,
         std::string beside = "") {
  const bool ok = higher ? value >= limit : value <= limit;
  std::printf("%-58s %9.2f %-7s %s %8.2f  %s  %s\n", what.c_str(), value, unit.c_str(),
              higher ? ">=" : "<=", limit, ok ? "ok  " : "OVER", beside.c_str());
  std::fflush(stdout);
  rows.push_back({std::move(what), value, std::move(unit), limit, higher, std::move(beside)});
}

fs::path bin_dir() { return fs::canonical("/proc/self/exe").parent_path(); }
fs::path source_dir() { return fs::path(WARMGATE_BENCH_SOURCE_DIR); }

// The engine alone on one rank of a scenario: CPU of the whole process, and time from spawn to
// ready.
Child engine_alone(const fs::path& scenario_file, std::int64_t output_tokens, const fs::path& dir) {
  auto scenario = warmgate::scenario::load_scenario(scenario_file);
  auto resolved = scenario.variants.at(0).ranks.at(0);
  for (auto& group : resolved.workload.groups) group.output_tokens = output_tokens;
  const fs::path config = dir / "rank0.json";
  std::ofstream(config) << warmgate::scenario::to_json(resolved);
  const fs::path events = dir / "events";
  fs::remove_all(events);
  fs::create_directory(events);
  setenv("WARMGATE_EVENTS_DIR", events.c_str(), 1);
  const auto start = now_ns();
  Child child = spawn({(bin_dir() / "warmgate-engine").string(), "--config", config.string(),
                       "--rank", "0", "--world", "1", "--kernel-cache", (dir / "cache").string()});
  unsetenv("WARMGATE_EVENTS_DIR");
  if (child.status != 0) {
    std::fprintf(stderr, "bench: the engine failed on %s (status %d)\n", scenario_file.c_str(),
                 child.status);
    std::exit(1);
  }
  warmgate::trace::Trace trace;
  for (const auto& entry : fs::directory_iterator(events)) {
    std::ifstream in(entry.path());
    warmgate::trace::LineReader reader("rank0", trace);
    reader.feed(std::string((std::istreambuf_iterator<char>(in)), {}));
  }
  for (const auto* ready : trace.of("ready"))
    child.ready_ms = static_cast<double>(ready->t_ns - start) / 1e6;
  return child;
}

// Wall time per run of a scenario through the whole harness.
double through_harness(const fs::path& file, int repeats, int jobs, const fs::path& cache) {
  warmgate::run::Options options;
  options.repeat = repeats;
  options.jobs = jobs;
  options.cache_dir = cache;
  options.engine = bin_dir() / "warmgate-engine";
  warmgate::target::CancelToken cancel;
  const auto start = now_ns();
  const auto result = warmgate::run::run_scenarios({file}, options, cancel);
  const double wall = static_cast<double>(now_ns() - start) / 1e6;
  if (result.verdict != warmgate::verdict::Verdict::kPass) {
    std::fprintf(stderr, "bench: %s did not pass: %s\n", file.c_str(),
                 result.scenarios.empty() ? "" : result.scenarios[0].reason.c_str());
    std::exit(1);
  }
  return wall / repeats;
}

}  // namespace

int main(int argc, char** argv) {
  int rounds = 15;
  std::string json_file;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg == "--rounds" && i + 1 < argc)
      rounds = std::max(3, std::atoi(argv[++i]));
    else if (arg == "--json" && i + 1 < argc)
      json_file = argv[++i];
    else {
      const bool asked = arg == "-h" || arg == "--help";
      std::fprintf(asked ? stdout : stderr, "usage: bench_startup [--json FILE] [--rounds N]\n");
      return asked ? 0 : 2;
    }
  }
  char name[] = "/tmp/warmgate-bench-XXXXXX";
  const fs::path dir = mkdtemp(name);
  const std::string warmgate = (bin_dir() / "warmgate").string();
  const std::string seeds = (source_dir() / "scenarios/seeds").string();
  std::printf("%u cores; medians of %d rounds\n", std::thread::hardware_concurrency(), rounds);

  const double floor = median_of(rounds * 4, [] { return spawn({"/bin/true"}).wall_ms; });
  const double floor_cpp = median_of(rounds * 4, [&] {
    return spawn({(bin_dir() / "warmgate-engine").string(), "--version"}).wall_ms;
  });
  char beside[160];
  std::snprintf(beside, sizeof beside, "floor: /bin/true %.2f ms", floor);
  row("spawn of the engine, --version, wall", floor_cpp, "ms", 5, false, beside);

  {
    warmgate::trace::EventWriter writer;
    const int fd = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    writer.open_descriptor(fd);
    const auto start = now_ns();
    constexpr int kLines = 19000;
    for (int i = 0; i < kLines; ++i) {
      writer.send(warmgate::trace::Line("alloc")
                      .str("pool", "weights")
                      .num("bytes", 8388608 + i)
                      .str("owner", "layers.12.attn.wq_b")
                      .str("lifetime", "persistent"));
    }
    row("one event, formatted and written", static_cast<double>(now_ns() - start) / 1e3 / kLines,
        "us", 2, false, "to /dev/null");
    ::close(fd);
  }

  setenv("WARMGATE_KERNEL_CACHE", (dir / "gatecache").c_str(), 1);
  const double cold = median_of(3, [&] {
    fs::remove_all(dir / "gatecache");
    return spawn({warmgate, "gate", seeds}).wall_ms;
  });
  row("seeds gate, cold kernel cache, four architectures", cold / 1e3, "s", 4, false);
  const double warm = median_of(rounds, [&] { return spawn({warmgate, "gate", seeds}).wall_ms; });
  row("seeds gate, warm", warm / 1e3, "s", 0.5, false);

  const fs::path full = source_dir() / "ci/bench/scenarios/full.yaml",
                 small = source_dir() / "ci/bench/scenarios/small.yaml";
  engine_alone(full, 1, dir);  // fills the cache
  const double to_ready = median_of(rounds, [&] { return engine_alone(full, 1, dir).cpu_ms; });
  const double ready_wall = median_of(rounds, [&] { return engine_alone(full, 1, dir).ready_ms; });
  std::snprintf(beside, sizeof beside, "whole process with one token; spawn to ready %.2f ms wall",
                ready_wall);
  row("full model, tp 1: spawn to ready, CPU", to_ready, "ms", 15, false, beside);
  const double decode64 = median_of(rounds, [&] { return engine_alone(full, 64, dir).cpu_ms; });
  std::snprintf(beside, sizeof beside, "%.3f ms a decode step", (decode64 - to_ready) / 63);
  row("full model with 64 decode steps, CPU", decode64, "ms", 60, false, beside);

  const int jobs = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  through_harness(full, 4, jobs, dir / "cache");
  row("full model through the harness, isolated runs",
      1e3 / through_harness(full, 60, jobs, dir / "cache"), "runs/s", 20, true);
  through_harness(small, 4, jobs, dir / "cache");
  row("small model through the harness, isolated runs",
      1e3 / through_harness(small, 300, jobs, dir / "cache"), "runs/s", 250, true);

  engine_alone(small, 16, dir);
  const double alone = median_of(rounds * 2, [&] { return engine_alone(small, 16, dir).wall_ms; });
  const double one_job = through_harness(small, 100, 1, dir / "cache");
  std::snprintf(beside, sizeof beside, "engine alone %.2f ms, through the harness %.2f ms, one job",
                alone, one_job);
  row("warmgate's own cost over the spawned engine", one_job - alone, "ms", 5, false, beside);

  if (!json_file.empty()) {
    nlohmann::json out = {{"schema", "bench/1.0"}, {"rows", nlohmann::json::array()}};
    for (const Row& r : rows) {
      out["rows"].push_back({{"what", r.what},
                             {"value", r.value},
                             {"unit", r.unit},
                             {"limit", r.limit},
                             {"higher_better", r.higher_better},
                             {"beside", r.beside}});
    }
    std::ofstream(json_file) << out.dump(1) << '\n';
  }
  fs::remove_all(dir);
  return 0;
}
