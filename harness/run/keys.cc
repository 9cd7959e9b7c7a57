#include "harness/run/keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "harness/contract/key_use.h"

namespace warmgate::run {

namespace {

bool known_kernel(const std::string& kernel) {
  return kernel == jit::kComputePrefillMetadata || kernel == jit::kBuildPrefillChunkMetadata ||
         kernel == jit::kCombineTopkSwaIndices;
}

std::optional<jit::Key> our_key(const std::string& text) {
  try {
    jit::Key key = jit::parse_key(text);
    if (known_kernel(key.kernel)) return key;
  } catch (const std::exception&) {
    // Text that another engine made up; the trace keeps it, we say nothing of it.
  }
  return std::nullopt;
}

// To compile is every warmed key that the engine did not compile strictly itself: the other
// architectures, all of them after a lenient compiler, and what it never came to.
KeysLeft left_to_us(const trace::Trace& trace, const scenario::Resolved& resolved) {
  const auto seam = resolved.seams.find("jit.compiler");
  const bool lenient = seam != resolved.seams.end() && seam->second == "lenient";
  std::set<std::pair<std::string, std::string>> done;
  for (const trace::Event* e : trace.of("compile")) {
    if (!lenient && e->src != "harness" && e->str("backend") == "nvrtc")
      done.emplace(e->str("arch"), e->str("key"));
  }
  KeysLeft out{warmed_keys(trace), {}};
  for (const std::string& key : out.warmed) {
    for (const std::string& arch : resolved.architectures) {
      if (done.count({arch, key}) == 0) out.compile.emplace_back(arch, key);
    }
  }
  return out;
}

std::string joined(const std::set<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

}  // namespace

std::vector<std::string> warmed_keys(const trace::Trace& trace) {
  std::vector<std::string> out;
  for (const auto& [key, warmed] : contract::key_use(contract::View(trace)).warmed) {
    out.push_back(key);
  }
  return out;
}

KeyJudge::KeyJudge(std::filesystem::path cache_dir, jit::Backend backend)
    : backend_(backend), compiler_({std::move(cache_dir), backend}) {}

bool KeyJudge::can_compile() const {
  return backend_ != jit::Backend::kHost && jit::nvrtc().available;
}

KeysLeft KeyJudge::collect(const trace::Trace& trace, const scenario::Resolved& resolved) {
  KeysLeft left = left_to_us(trace, resolved);
  const std::lock_guard lock(mutex_);
  for (const auto& [arch, text] : left.compile) {
    auto [it, fresh] = keys_.try_emplace(text);
    if (fresh) it->second = our_key(text);
    if (it->second) wanted_.emplace(arch, text);
  }
  return left;
}

void KeyJudge::compile(int threads, const target::CancelToken& cancel) {
  if (wanted_.empty() || !can_compile()) return;
  // One program per architecture and kernel, so that two cores share the work evenly.
  struct Program {
    std::string arch;
    std::vector<std::string> texts;
    std::vector<jit::Key> keys;
  };
  std::map<std::pair<std::string, std::string>, Program> grouped;
  for (const auto& [arch, text] : wanted_) {
    // A compiler that is too old for an architecture has not said that a key is broken.
    if (compiled_.count({arch, text}) > 0 || !jit::no_such_architecture(arch).empty()) continue;
    const jit::Key& key = *keys_.at(text);
    Program& program = grouped[{arch, key.kernel}];
    program.arch = arch;
    program.texts.push_back(text);
    program.keys.push_back(key);
  }
  std::vector<Program> programs;
  for (auto& [name, program] : grouped) programs.push_back(std::move(program));
  // The largest first: it decides when the last thread ends.
  std::stable_sort(programs.begin(), programs.end(), [](const Program& a, const Program& b) {
    return a.keys.size() > b.keys.size();
  });

  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < programs.size() && !cancel.cancelled(); i = next++) {
      const Program& program = programs[i];
      std::vector<jit::Compiled> results = compiler_.compile_all(program.keys, program.arch);
      const std::lock_guard lock(mutex_);
      for (std::size_t k = 0; k < results.size() && k < program.texts.size(); ++k) {
        compiled_[{program.arch, program.texts[k]}] = std::move(results[k]);
      }
    }
  };
  const auto wish = static_cast<std::size_t>(std::max(1, threads));
  std::vector<std::jthread> pool;
  for (std::size_t i = 1; i < std::min(wish, programs.size()); ++i) pool.emplace_back(work);
  work();
}

const jit::HostCheck& KeyJudge::host_check(const std::string& text, const jit::Key& key) {
  {
    const std::lock_guard lock(mutex_);
    const auto it = checks_.find(text);
    if (it != checks_.end()) return it->second;
  }
  jit::HostCheck check = jit::check_on_host(key);  // outside the lock: it runs a kernel body
  const std::lock_guard lock(mutex_);
  return checks_.try_emplace(text, std::move(check)).first->second;
}

void KeyJudge::append_events(trace::Trace& trace, const KeysLeft& left) {
  for (const std::string& text : left.warmed) {
    const std::optional<jit::Key> key = our_key(text);
    if (!key) continue;
    const jit::HostCheck& check = host_check(text, *key);
    trace.events.push_back(trace::harness_event("check", {{"tensor", text},
                                                          {"kind", "host_key"},
                                                          {"kernel", key->kernel},
                                                          {"ok", check.ok},
                                                          {"fault", check.fault},
                                                          {"message", check.message},
                                                          {"file", check.file},
                                                          {"line", check.line},
                                                          {"phase", "warmup"}}));
  }
  for (const auto& [arch, text] : left.compile) {
    const std::lock_guard lock(mutex_);
    const auto it = compiled_.find({arch, text});
    if (it == compiled_.end()) continue;
    const jit::Compiled& result = it->second;
    trace.events.push_back(
        trace::harness_event("compile", {{"kernel", keys_.at(text)->kernel},
                                         {"key", text},
                                         {"arch", arch},
                                         {"source", std::string(to_string(result.source))},
                                         {"ms", result.ms},
                                         {"status", result.ok ? "ok" : "failed"},
                                         {"log", result.log},
                                         {"backend", result.backend},
                                         {"phase", "warmup"}}));
  }
}

std::vector<std::string> KeyJudge::not_observed() const {
  const std::lock_guard lock(mutex_);
  std::set<std::string> missing;
  for (const auto& [arch, text] : wanted_) {
    if (compiled_.count({arch, text}) == 0) missing.insert(arch);
  }
  std::vector<std::string> out;
  if (can_compile()) {
    std::erase_if(missing, [&](const std::string& arch) {
      const std::string none = jit::no_such_architecture(arch);
      if (none.empty()) return false;
      out.push_back(fmt::format("keys-valid: no compilation for {}: {}", arch, none));
      return true;
    });
  }
  if (missing.empty()) return out;
  std::string why = "the gate was ended before it";
  if (backend_ == jit::Backend::kHost) {
    why = "the host half was asked for";
  } else if (!jit::nvrtc().available) {
    why = jit::nvrtc().why_not.empty() ? "NVRTC is not on this machine" : jit::nvrtc().why_not;
  }
  out.push_back(
      fmt::format("keys-valid: no compilation for {}: {}; keys are judged by the host half",
                  joined(missing), why));
  return out;
}

}  // namespace warmgate::run
