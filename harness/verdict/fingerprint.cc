#include "harness/verdict/fingerprint.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "harness/contract/cause.h"
#include "harness/trace/sha256.h"
#include "harness/verdict/mask.h"

namespace warmgate::verdict {
namespace {

using Frame = Fingerprint::Frame;
constexpr std::size_t kMaxFrames = 3;

// Frames that say how a process ends, not why.
bool ignored(std::string_view function) {
  constexpr std::array<std::string_view, 18> names = {"",
                                                      "abort",
                                                      "raise",
                                                      "__GI_abort",
                                                      "__GI_raise",
                                                      "gsignal",
                                                      "terminate",
                                                      "std::terminate",
                                                      "__assert_fail",
                                                      "__assert_fail_base",
                                                      "_start",
                                                      "main",
                                                      "__libc_start_main",
                                                      "<module>",
                                                      "_call_impl",
                                                      "_wrapped_call_impl",
                                                      "__cxa_throw",
                                                      "pthread_kill"};
  return std::find(names.begin(), names.end(), function) != names.end();
}

void add(std::vector<Frame>& frames, std::string_view function, std::string_view file) {
  if (frames.size() >= kMaxFrames || ignored(function)) return;
  Frame frame{mask(function), mask(last_part(file))};
  for (const Frame& have : frames)
    if (have.function == frame.function && have.file == frame.file) return;
  frames.push_back(std::move(frame));
}

// A stack entry is {"function":…,"file":…} or a text "function (file:line)" or just a function.
void add_entry(std::vector<Frame>& frames, const nlohmann::json& entry) {
  if (entry.is_object()) {
    const auto field = [&](const char* key) {
      const auto it = entry.find(key);
      return it != entry.end() && it->is_string() ? it->get<std::string>() : std::string();
    };
    add(frames, field("function"), field("file"));
  } else if (entry.is_string()) {
    const std::string text = entry.get<std::string>();
    const std::size_t open = text.find(" (");
    if (open == std::string::npos) return add(frames, text, "");
    std::string file = text.substr(open + 2);
    file = file.substr(0, file.find_first_of(":)"));
    add(frames, std::string_view(text).substr(0, open), file);
  }
}

std::vector<Frame> fault_frames(const trace::Event& fault) {
  std::vector<Frame> frames;
  add(frames, fault.str("function"), fault.str("file"));
  if (const nlohmann::json* stack = fault.body.nested("stack"); stack && stack->is_array())
    for (const nlohmann::json& entry : *stack) add_entry(frames, entry);
  return frames;
}

// The kernel of a compile key, else the key itself (a resource, a stage).
std::string subject(const std::string& key) { return key.substr(0, key.find('{')); }

// The first contract that broke; those that only say that something died come last.
const contract::Result* first_broken(const RunRecord& run, bool beyond_starts) {
  for (const contract::Result& result : run.contracts) {
    if (result.state != contract::State::kBroken || result.findings.empty()) continue;
    if (beyond_starts && (result.contract == "starts" || result.contract == "protocol")) continue;
    return &result;
  }
  return nullptr;
}

}  // namespace

std::string Fingerprint::id() const {
  return trace::sha256_hex(to_json().dump(-1, ' ', false, nlohmann::json::error_handler_t::replace))
      .substr(0, 12);
}

nlohmann::json Fingerprint::to_json() const {
  nlohmann::json list = nlohmann::json::array();
  for (const Frame& frame : frames)
    list.push_back({{"function", frame.function}, {"file", frame.file}});
  return {
      {"phase", phase}, {"kind", kind}, {"type", type}, {"contract", contract}, {"frames", list}};
}

std::optional<Fingerprint> make_fingerprint(const RunRecord& run) {
  if (run.outcome != Outcome::kFailed && run.outcome != Outcome::kCrashed &&
      run.outcome != Outcome::kHung)
    return std::nullopt;
  Fingerprint print;
  print.phase = run.phase;
  print.kind = run.outcome == Outcome::kHung ? "deadline" : run.kind;
  const bool died = run.outcome != Outcome::kFailed;
  const contract::Result* broken = first_broken(run, died);
  if (!died && !broken) broken = first_broken(run, false);
  if (broken) print.contract = broken->contract;
  if (died) {
    const contract::View view(run.trace);
    const auto cause = contract::first_cause(view);
    if (cause && cause->kind == contract::Cause::Kind::kFault) {
      print.type = mask(cause->type);
      print.frames = fault_frames(view.event(cause->event));
    } else if (!run.signal_name.empty()) {
      print.type = run.signal_name;
    } else if (run.exit_code) {
      print.type = "exit " + std::to_string(*run.exit_code);
    } else {
      print.type = run.kind;
    }
  } else if (broken) {
    print.kind = "contract";
  }
  if (broken && print.frames.empty())
    for (const contract::Finding& f : broken->findings)
      add(print.frames, subject(f.key), f.layer_kind);
  return print;
}

bool same(const Fingerprint& a, const Fingerprint& b) {
  const auto equal = [](const Frame& x, const Frame& y) {
    return x.function == y.function && x.file == y.file;
  };
  if (a.to_json() == b.to_json()) return true;
  // Longest common subsequence of at most three frames each.
  std::array<std::array<std::size_t, kMaxFrames + 1>, kMaxFrames + 1> best{};
  const std::size_t n = std::min(a.frames.size(), kMaxFrames);
  const std::size_t m = std::min(b.frames.size(), kMaxFrames);
  for (std::size_t i = 1; i <= n; ++i)
    for (std::size_t j = 1; j <= m; ++j)
      best[i][j] = equal(a.frames[i - 1], b.frames[j - 1])
                       ? best[i - 1][j - 1] + 1
                       : std::max(best[i - 1][j], best[i][j - 1]);
  return best[n][m] >= 2;
}

}  // namespace warmgate::verdict
