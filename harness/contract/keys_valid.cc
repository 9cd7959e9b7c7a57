// keys-valid: every warmed key runs on the host with checked integers, and compiles strictly for
// every listed architecture. A lenient compiler's ok is worth nothing: the host half still speaks.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "harness/contract/builtin.h"
#include "harness/contract/fold.h"
#include "harness/contract/key_use.h"

namespace warmgate::contract {
namespace {

constexpr const char* kKeysValid = "keys-valid";

struct KeyState {
  bool checked = false, host_broken = false;
  std::string host_fault;
  std::set<std::string> compiled;             // architectures with an ok
  std::map<std::string, std::string> failed;  // architecture → first line of the compiler's log
  std::vector<std::size_t> events;
};

std::string first_line(std::string_view log) {
  const std::size_t start = log.find_first_not_of(" \n\t");
  if (start == std::string_view::npos) return "";
  log.remove_prefix(start);
  return std::string(log.substr(0, std::min<std::size_t>(log.find('\n'), 200)));
}

std::map<std::string, KeyState> states(const View& view, const KeyUse& use) {
  std::map<std::string, KeyState> out;
  for (const auto& [key, warmed] : use.warmed) out[key].events = warmed.events;
  for (std::size_t i = 0; i < view.size(); ++i) {
    const trace::Event& e = view.event(i);
    // The harness's own run of the body, and the engine's launch (probe_keys).
    if (e.ev == "check" && (text(e, "kind") == "host_key" || text(e, "kind") == "probe")) {
      const auto it = out.find(std::string(text(e, "tensor")));
      if (it == out.end() || e.body.kind("ok") != trace::Fields::Kind::kBool) continue;
      KeyState& state = it->second;
      state.checked = true;
      if (e.flag("ok")) continue;
      state.host_broken = true;
      state.host_fault = e.str("fault", "fault");
      if (const auto message = text(e, "message"); !message.empty())
        state.host_fault += ": " + first_line(message);
      if (state.events.size() < kMaxProof) state.events.push_back(i);
    } else if (e.ev == "compile") {
      const auto it = out.find(std::string(text(e, "key")));
      if (it == out.end()) continue;
      KeyState& state = it->second;
      const std::string arch(text(e, "arch"));
      // The host back end is no architecture: its failure speaks for the host, its ok for nothing.
      const bool host = arch == "host" || text(e, "backend") == "host";
      const std::string_view status = text(e, "status");
      if (status == "ok" && !host) state.compiled.insert(arch);
      if (status != "failed") continue;
      if (!host) {
        state.failed.emplace(arch, first_line(text(e, "log")));
      } else if (!state.host_broken) {
        state.host_broken = true;
        state.host_fault = first_line(text(e, "log"));
      }
      if (state.events.size() < kMaxProof) state.events.push_back(i);
    }
  }
  return out;
}

class KeysValid : public Contract {
 public:
  std::string_view name() const override { return kKeysValid; }
  std::string_view promise() const override {
    return "every warmed key runs on the host with checked integers and compiles strictly for "
           "every listed architecture";
  }
  std::vector<std::string> needs() const override { return {"compile", "check"}; }

  Result judge(const Context& context) const override {
    const View& view = view_of(context);
    const KeyUse use = key_use(view);
    if (use.warmed.empty() && !view.reached("warmup"))
      return not_observed(kKeysValid, {}, "the run ended before warmup");
    std::set<std::string> listed;
    if (context.resolved)
      listed.insert(context.resolved->architectures.begin(), context.resolved->architectures.end());
    std::vector<Finding> findings;
    std::size_t unchecked = 0;
    std::set<std::string> unseen;
    for (const auto& [key, state] : states(view, use)) {
      if (!state.checked) ++unchecked;
      for (const std::string& arch : listed)
        if (state.compiled.count(arch) == 0 && state.failed.count(arch) == 0) unseen.insert(arch);
      if (state.host_broken || !state.failed.empty())
        findings.push_back(finding(key, use.warmed.at(key), state, listed));
    }
    std::string why;
    if (unchecked > 0) why = counted(unchecked, "warmed key") + " without a host check";
    if (!unseen.empty())
      why += fmt::format("{}not compiled strictly for {}", why.empty() ? "" : "; ",
                         fmt::join(unseen, ", "));
    // Half an answer: without the host's check a lenient compile proves nothing.
    if (findings.empty() && unchecked > 0) return not_observed(kKeysValid, {"check"}, why);
    return conclude(kKeysValid, std::move(findings), State::kKept, why);
  }

 private:
  static Finding finding(const std::string& key, const KeyUse::Warmed& warmed,
                         const KeyState& state, const std::set<std::string>& listed) {
    Finding f;
    f.contract = kKeysValid;
    f.phase = "warmup";
    f.key = key;
    f.rank = warmed.ranks.size() == 1 ? *warmed.ranks.begin() : -1;
    f.expected = listed.empty() ? "runs on the host, compiles strictly"
                                : fmt::format("runs on the host, compiles strictly for {}",
                                              fmt::join(listed, ", "));
    std::vector<std::string> archs, seen;
    nlohmann::json logs = nlohmann::json::object();
    for (const auto& [arch, log] : state.failed) {
      archs.push_back(arch);
      logs[arch] = log;
    }
    if (state.host_broken) seen.push_back("host: " + state.host_fault);
    if (!archs.empty()) {
      const std::string& log = state.failed.begin()->second;
      seen.push_back(
          fmt::format("{}: {}", fmt::join(archs, ", "), log.empty() ? "does not compile" : log));
    }
    f.seen = fmt::format("{}", fmt::join(seen, "; "));
    f.message = fmt::format("warmup asks for {}, which is broken ({})", key, f.seen);
    f.count = archs.size() + (state.host_broken ? 1 : 0);
    f.events = state.events;
    f.detail = {{"host", state.host_broken ? state.host_fault : (state.checked ? "ok" : "unknown")},
                {"failed", logs},
                {"compiled", state.compiled},
                {"kernel", warmed.kernel}};
    return f;
  }
};

}  // namespace

const Contract& keys_valid_contract() {
  static const KeysValid contract;
  return contract;
}

}  // namespace warmgate::contract
