#include "harness/run/reproduce.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <sstream>

#include "harness/run/prepare.h"

namespace warmgate::run {

namespace fs = std::filesystem;

namespace {

std::string quoted(const std::string& word) {
  bool plain = !word.empty();
  for (const char c : word) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    plain = plain && (letter || std::strchr("_-./:=,+@%", c) != nullptr) && c != '\0';
  }
  if (plain) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// The choices that change what a run gives, in the order of `warmgate run --help`.
void append_choices(const Options& options, std::vector<std::string>& words) {
  const auto add = [&](const char* flag, const std::string& value) {
    words.insert(words.end(), {flag, value});
  };
  if (!options.expect) words.push_back("--no-expect");
  if (!options.load.device.empty()) add("--device", options.load.device);
  for (const std::string& overlay : options.load.overlays) add("--set", overlay);
  if (options.timeout_s) add("--timeout", fmt::format("{:g}", *options.timeout_s));
  if (options.jit != jit::Backend::kAuto) add("--jit", std::string(to_string(options.jit)));
  if (options.no_cache) words.push_back("--no-cache");
  if (!options.cache_dir.empty()) add("--cache-dir", options.cache_dir.string());
  if (!options.engine.empty()) add("--engine", options.engine.string());
  for (const std::string& probe : options.probes) add("--probe", probe);
  if (!options.today.empty()) add("--today", options.today);
  for (const fs::path& metric : options.metrics) add("--metrics", metric.string());
  for (const fs::path& contract : options.contracts) add("--contracts", contract.string());
}

bool same_file(const fs::path& a, const fs::path& b) {
  std::error_code failed;
  const bool same = fs::equivalent(a, b, failed);
  return same && !failed;
}

}  // namespace

std::string shell_line(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + quoted(word);
  return out;
}

std::string program_name() {
  std::error_code failed;
  const fs::path self = fs::read_symlink("/proc/self/exe", failed);
  if (failed || self.filename() != "warmgate") return "warmgate";  // e.g. a test
  std::istringstream folders(std::getenv("PATH") != nullptr ? std::getenv("PATH") : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const fs::path found = fs::path(folder.empty() ? "." : folder) / "warmgate";
    if (::access(found.c_str(), X_OK) != 0) continue;
    if (same_file(found, self)) return "warmgate";
    break;  // PATH gives another one
  }
  const fs::path here = fs::current_path(failed);
  const fs::path near = failed ? self : self.lexically_relative(here);
  const bool below = !near.empty() && *near.begin() != "..";
  return below ? near.string() : self.string();
}

std::string reproduce_command(const fs::path& scenario, const std::string& variant,
                              const Options& options, int starts) {
  // What came out of a bundle is gone when somebody reads this.
  const fs::path& what = options.bundle.empty() ? scenario : options.bundle;
  std::vector<std::string> words = {program_name(), "run", what.string(), "--variant", variant};
  append_choices(options, words);
  if (starts > 1) words.insert(words.end(), {"--repeat", std::to_string(starts), "--jobs", "1"});
  return shell_line(words);
}

std::string gate_command(const std::vector<fs::path>& files, const Options& options) {
  if (!options.bundle.empty()) return shell_line({program_name(), "run", options.bundle.string()});
  std::vector<std::string> words = {program_name(), options.verb};
  for (const fs::path& file : files) words.push_back(file.string());
  for (const std::string& variant : options.variants) {
    words.insert(words.end(), {"--variant", variant});
  }
  append_choices(options, words);
  if (options.repeat != 1) words.insert(words.end(), {"--repeat", std::to_string(options.repeat)});
  if (options.jobs > 0) words.insert(words.end(), {"--jobs", std::to_string(options.jobs)});
  return shell_line(words);
}

}  // namespace warmgate::run
