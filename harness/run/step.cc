#include "harness/run/step.h"

#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "harness/run/json_text.h"
#include "harness/run/reproduce.h"
#include "harness/run/run_dir.h"
#include "harness/verdict/fingerprint.h"

extern char** environ;

namespace warmgate::run {

namespace {

using verdict::Fingerprint;
using verdict::Outcome;
using verdict::RunRecord;
using verdict::Verdict;

StepResult stop(std::string why) { return {Step::kStop, std::move(why), std::nullopt, false}; }

std::optional<Fingerprint> read_fingerprint(const nlohmann::json& value) {
  if (!value.is_object() || !value.contains("kind")) return std::nullopt;
  Fingerprint out;
  const auto text = [&](const char* key) {
    const auto it = value.find(key);
    return it != value.end() && it->is_string() ? it->get<std::string>() : std::string();
  };
  out.phase = text("phase");
  out.kind = text("kind");
  out.type = text("type");
  out.contract = text("contract");
  const auto frames = value.find("frames");
  if (frames != value.end() && frames->is_array()) {
    for (const auto& frame : *frames) {
      if (!frame.is_object()) continue;
      out.frames.push_back({frame.value("function", ""), frame.value("file", "")});
    }
  }
  return out;
}

void find_fingerprints(const nlohmann::json& value, std::vector<Fingerprint>& out) {
  if (value.is_object()) {
    for (const auto& [key, child] : value.items()) {
      if (key == "fingerprint") {
        if (auto found = read_fingerprint(child)) out.push_back(std::move(*found));
      } else {
        find_fingerprints(child, out);
      }
    }
  } else if (value.is_array()) {
    for (const auto& child : value) find_fingerprints(child, out);
  }
}

bool is_wanted(const Fingerprint& seen, const Wanted& wanted) {
  if (!wanted.id.empty() && seen.id().rfind(wanted.id, 0) == 0) return true;
  for (const Fingerprint& failure : wanted.failures) {
    if (verdict::same(seen, failure)) return true;
  }
  return false;
}

/// How the build ended: 0 built, 1 it failed, -1 it could not be started.
struct Built {
  int status = 0;
  std::string why;
};

// The build speaks to the terminal as if git had run it; a cancel ends its whole group.
Built build(const std::vector<std::string>& argv, const target::CancelToken& cancel) {
  std::vector<char*> words;
  words.reserve(argv.size() + 1);
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  pid_t pid = -1;
  const int error = ::posix_spawnp(&pid, words[0], nullptr, &attributes, words.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    return {-1, fmt::format("cannot start {}: {}", argv[0], std::strerror(error))};
  }
  const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  bool ended_it = false;
  while (pidfd.valid()) {
    pollfd fds[2] = {{pidfd.get(), POLLIN, 0}, {ended_it ? -1 : cancel.fd(), POLLIN, 0}};
    if (::poll(fds, 2, -1) < 0 && errno != EINTR) break;
    if (fds[0].revents != 0) break;
    if (!ended_it && cancel.cancelled()) {
      ended_it = true;
      ::kill(-pid, SIGKILL);
    }
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (ended_it) return {-1, "interrupted"};
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {0, ""};
  return {1, WIFEXITED(status)
                 ? fmt::format("the build ended with {}: {}", WEXITSTATUS(status), shell_line(argv))
                 : fmt::format("the build died by {}: {}", target::signal_name(WTERMSIG(status)),
                               shell_line(argv))};
}

std::string one_failure(const RunRecord& run) {
  return fmt::format("variant {} {}{}{}", run.variant, to_string(run.outcome),
                     run.phase.empty() ? "" : " in " + run.phase,
                     run.fingerprint ? ", fingerprint " + run.fingerprint->id() : "");
}

}  // namespace

std::vector<Fingerprint> fingerprints_in(const std::filesystem::path& report) {
  const nlohmann::json document = read_json(report);
  std::vector<Fingerprint> out;
  find_fingerprints(document, out);
  if (out.empty()) throw std::runtime_error(report.string() + " has no failure with a fingerprint");
  return out;
}

StepResult decide(const GateResult& gate, const Wanted& wanted) {
  const auto result = [](Step step, std::string reason) {
    return StepResult{step, std::move(reason), std::nullopt, false};
  };
  std::string other;  // the first failure that is another one
  bool all_passed = true, any_run = false, infra = false;
  for (const ScenarioResult& scenario : gate.scenarios) {
    for (const VariantResult& variant : scenario.variants) {
      for (const RunRecord& run : variant.runs) {
        any_run = true;
        infra = infra || run.outcome == Outcome::kInfra;
        all_passed = all_passed && run.outcome == Outcome::kPassed;
        if (!run.fingerprint || wanted.any()) continue;
        if (is_wanted(*run.fingerprint, wanted)) return result(Step::kBad, one_failure(run));
        if (other.empty()) other = one_failure(run);
      }
    }
  }
  if (gate.interrupted) return result(Step::kStop, "interrupted");
  if (!any_run) return result(Step::kStop, "nothing was run");
  const std::string reason = gate.scenarios.empty() ? "" : gate.scenarios.front().reason;
  if (infra) return result(Step::kCannotJudge, "the machine was at fault: " + reason);
  if (!other.empty()) {
    return result(Step::kCannotJudge, "a different failure: " + other);
  }
  if (!wanted.any() && !all_passed) {
    return result(Step::kCannotJudge, "neither passed nor failed as wanted: " + reason);
  }
  switch (gate.verdict) {
    case Verdict::kPass:
      return result(Step::kGood, reason.empty() ? "passed" : reason);
    case Verdict::kFail:
      if (wanted.any()) return result(Step::kBad, reason);
      return result(Step::kCannotJudge, "failed, but not the failure that is searched: " + reason);
    default:
      return result(Step::kCannotJudge, reason);
  }
}

StepResult step(const StepOptions& options, const target::CancelToken& cancel,
                const Progress& progress) {
  try {
    Wanted wanted;
    wanted.id = options.fingerprint;
    const bool hex = wanted.id.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (!wanted.id.empty() && (!hex || wanted.id.size() < 6 || wanted.id.size() > 12)) {
      return stop("a fingerprint is 12 hex digits (at least the first 6): " + wanted.id);
    }
    if (!options.like.empty()) wanted.failures = fingerprints_in(options.like);
    if (!options.build.empty()) {
      const Built built = build(options.build, cancel);
      if (cancel.cancelled()) return {Step::kStop, "interrupted", std::nullopt, true};
      if (built.status < 0) return stop(built.why);
      if (built.status > 0) return {Step::kCannotJudge, built.why, std::nullopt, false};
    }
    GateResult gate = run_scenarios({options.scenario}, options.run, cancel, progress);
    StepResult out = decide(gate, wanted);
    out.interrupted = gate.interrupted;
    out.gate = std::move(gate);
    return out;
  } catch (const std::exception& error) {
    return stop(error.what());
  }
}

}  // namespace warmgate::run
