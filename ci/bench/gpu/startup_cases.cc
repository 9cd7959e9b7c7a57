// What a start costs: compiling the keys of the second founding scenario with no cache, and the
// gate of both founding scenarios on the GPU. Processes are timed whole, as a user waits for them.
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>

#include "ci/bench/gpu/bench.h"
#include "kernels/jit/jit.h"

extern char** environ;

namespace warmgate::bench {
namespace {

using Clock = std::chrono::steady_clock;
double us_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

Measured summary(std::vector<double> us) {
  std::sort(us.begin(), us.end());
  return {us[us.size() / 2], us.front(), us.back(), static_cast<int>(us.size())};
}

const std::string kScenarios = std::string(WARMGATE_BENCH_SOURCE_DIR) + "/scenarios/";

/// Runs the warmgate beside this program; standard output goes into `file`. Throws unless it ends
/// with 0.
void warmgate(std::vector<std::string> args, const std::string& file) {
  const auto program = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "warmgate";
  args.insert(args.begin(), program.string());
  std::vector<char*> argv;
  for (std::string& arg : args) argv.push_back(arg.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::runtime_error(args[0] + ": " + strerror(error));
  int status = 0;
  if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw std::runtime_error(
        fmt::format("{} {} ended with status {:#x}", args[0], args[1], status));
}

/// A file of our own that is gone afterwards.
struct TemporaryFile {
  TemporaryFile() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "warmgate-bench-XXXXXX").string();
    const int fd = mkstemp(pattern.data());
    if (fd < 0) throw std::runtime_error("no temporary file: " + pattern);
    close(fd);
    name = pattern;
  }
  ~TemporaryFile() { unlink(name.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  std::string name;
};

/// The keys that warmup asks for, as the engine itself lists them.
std::vector<jit::Key> warmed_keys() {
  const TemporaryFile out;
  warmgate({"keys", kScenarios + "seeds/zero-compress-ratio-warmup-key.yaml", "--variant", "B",
            "--device", "meta", "--jit", "host", "--no-cache", "--json", "-"},
           out.name);
  std::ifstream file(out.name);
  const nlohmann::json listed = nlohmann::json::parse(file);
  std::vector<jit::Key> keys;
  for (const auto& kernel : listed.at("variants").at(0).at("kernels"))
    for (const auto& key : kernel.at("keys"))
      if (key.at("asked").get<bool>())
        keys.push_back(jit::parse_key(key.at("key").get<std::string>()));
  if (keys.empty()) throw std::runtime_error("warmup asked for no keys");
  return keys;
}

void compile_keys(Bench& bench) {
  const std::vector<jit::Key> keys = warmed_keys();
  std::vector<double> times;
  for (int i = 0; i < (bench.quick() ? 3 : 7); ++i) {
    const auto begin = Clock::now();
    jit::Compiler compiler({"", jit::Backend::kNvrtc});
    for (const jit::Compiled& c : compiler.compile_all(keys, "sm_90a"))
      if (!c.ok) throw std::runtime_error("a key does not compile: " + c.log);
    times.push_back(us_since(begin));
  }
  Result r;
  r.name = fmt::format("compile {} metadata keys, no cache", keys.size());
  r.time = summary(times);
  r.reference_us = 7.8e6;
  r.peer = "Triton 3.6, 32 keys";
  r.must_us = 0.6e6, r.aim_us = 0.2e6;
  r.note = fmt::format("{} cores, NVRTC's loading included", std::thread::hardware_concurrency());
  bench.add(std::move(r));
}

/// The same gate untimed: afterwards the kernel cache is warm, and what is timed is known to be
/// both scenarios with A and B, whatever their files say by now.
void fill_cache_and_check(std::vector<std::string> args) {
  const TemporaryFile out;
  args.insert(args.end(), {"--json", out.name});
  warmgate(args, "/dev/null");
  std::ifstream file(out.name);
  const nlohmann::json report = nlohmann::json::parse(file);
  std::string ran;
  for (const auto& scenario : report.at("scenarios"))
    for (const auto& variant : scenario.at("variants"))
      if (variant.at("verdict") == "PASS") ran += variant.at("name").get<std::string>() + " ";
  if (ran != "A B A B ")
    throw std::runtime_error("not A and B of both seeds were run, but: " + ran);
}

void seeds_gate(Bench& bench) {
  const std::vector<std::string> args = {
      "gate", kScenarios + "nightly/dspark-absent-topk-buffer-on-a-gpu.yaml",
      kScenarios + "nightly/zero-compress-ratio-warmup-key-on-a-gpu.yaml",
      // The broken revision and the mended one; the scenarios' other variants are more starts.
      "--variant", "A,B", "-q"};
  fill_cache_and_check(args);
  std::vector<double> times;
  for (int i = 0; i < (bench.quick() ? 1 : 3); ++i) {
    const auto begin = Clock::now();
    warmgate(args, "/dev/null");
    times.push_back(us_since(begin));
  }
  Result r;
  r.name = "gate of both seeds, A and B, warm cache";
  r.time = summary(times);
  r.reference_us = 421e6;
  r.peer = "one real start, vLLM#50693";
  r.must_us = 8e6, r.aim_us = 3e6;
  bench.add(std::move(r));
}

}  // namespace

std::vector<Case> startup_cases() {
  return {{"compile metadata keys", compile_keys}, {"seeds gate", seeds_gate}};
}

}  // namespace warmgate::bench
