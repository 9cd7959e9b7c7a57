#include "harness/run/fit.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <sstream>

#include "harness/contract/subprocess.h"
#include "harness/run/inject.h"
#include "harness/scenario/problems.h"

namespace warmgate::run {

namespace fs = std::filesystem;

namespace {

constexpr const char* kCuda =
    "a build with the CUDA parts, an NVIDIA GPU and its driver; this is not one";

// Names as a program prints them; one that prints anything else is no engine of ours.
bool is_name(const std::string& word) {
  return !word.empty() && word.size() <= 32 &&
         word.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-") == std::string::npos;
}

// Where the last word of a key path stands in a line: origins know lines only.
int column_of(const std::string& file, int number, const std::string& key) {
  std::ifstream in(file);
  std::string line;
  for (int i = 0; i < number && std::getline(in, line); ++i) {
  }
  const std::size_t at = line.find(key.substr(key.rfind('.') + 1));
  return at == std::string::npos ? 1 : static_cast<int>(at) + 1;
}

}  // namespace

EngineDevices ask_devices(const fs::path& engine) {
  EngineDevices out;
  if (engine.empty()) return out;
  const contract::Finished answer = contract::run_helper(
      {engine.string(), "--devices"}, [] { return std::string(); }, std::chrono::seconds(10), 4096);
  if (!answer.started || answer.timed_out || answer.too_much || answer.exit_code != 0) return out;
  std::istringstream lines(answer.out);
  for (std::string line; std::getline(lines, line);) {
    if (!is_name(line)) return out;
    out.names.push_back(line);
  }
  out.told = !out.names.empty();
  return out;
}

const EngineDevices& Fit::devices() {
  if (!devices_) devices_ = ask_devices(engine_);
  return *devices_;
}

std::optional<Unfit> Fit::unfit(const scenario::Variant& variant) {
  if (variant.target.kind != scenario::Target::Kind::kNative) return std::nullopt;
  for (const scenario::Resolved& rank : variant.ranks) {
    const std::string& device = rank.device;
    if (device != "meta" && devices().told) {
      const auto& names = devices().names;
      if (std::find(names.begin(), names.end(), device) == names.end()) {
        return Unfit{kDeviceKey,
                     fmt::format("this engine has no ops for device {}; it has {}{}", device,
                                 scenario::list_of(names),
                                 device == "cuda" ? fmt::format("; cuda needs {}", kCuda) : "")};
      }
    }
    if (backend_ == jit::Backend::kHost || rank.architectures.empty()) continue;
    // The engine compiles for its own architecture; the others are the harness's, which leaves out
    // what it cannot compile for and says so.
    const std::string why = jit::no_such_architecture(rank.architectures.front());
    if (!why.empty()) {
      return Unfit{"architectures", why +
                                        "; the first is the engine's own. --jit host compiles "
                                        "for none and judges keys by the host half alone"};
    }
  }
  return std::nullopt;
}

void check_options(const Options& options) {
  std::vector<scenario::Problem> problems;
  std::error_code failed;
  if (!options.engine.empty()) {
    const bool file = fs::is_regular_file(options.engine, failed);
    if (!file || ::access(options.engine.c_str(), X_OK) != 0) {
      const std::string why = !fs::exists(options.engine, failed) ? "no such file"
                              : !file                             ? "not a file"
                                                                  : "not executable";
      problems.push_back({"--engine", 0, 0, "", options.engine.string() + ": " + why});
    }
  }
  for (std::string& wrong : wrong_with(options.probes))
    problems.push_back({"--probe", 0, 0, "", std::move(wrong)});
  if (!options.cache_dir.empty()) {
    fs::create_directories(options.cache_dir, failed);
    if (!fs::is_directory(options.cache_dir, failed)) {
      problems.push_back({"--cache-dir", 0, 0, "",
                          options.cache_dir.string() + ": not a folder, nor can it be made one"});
    } else if (::access(options.cache_dir.c_str(), W_OK | X_OK) != 0) {
      problems.push_back(
          {"--cache-dir", 0, 0, "",
           options.cache_dir.string() + ": cannot be written: " + std::strerror(errno)});
    }
  }
  if (!problems.empty()) throw scenario::ScenarioError(std::move(problems));
}

scenario::Problem problem_at(const scenario::Scenario& scenario, const scenario::Variant& variant,
                             const Unfit& unfit) {
  scenario::Problem out{scenario.path.string(), 0, 0, unfit.key, unfit.message};
  const auto it = variant.origins.find(unfit.key);
  if (it == variant.origins.end() || it->second == "default") return out;
  const std::string& origin = it->second;  // "file:line (layer)", or "--set KEY=VALUE"
  const std::size_t end = origin.rfind(" (");
  const std::size_t colon = end == std::string::npos ? end : origin.rfind(':', end);
  if (colon != std::string::npos) {
    int line = 0;
    const char* last = origin.data() + end;
    const auto [stop, error] = std::from_chars(origin.data() + colon + 1, last, line);
    if (error == std::errc() && stop == last) {
      out.file = origin.substr(0, colon);
      out.line = line;
      out.column = column_of(out.file, line, unfit.key);
      return out;
    }
  }
  out.file = origin;
  return out;
}

}  // namespace warmgate::run
