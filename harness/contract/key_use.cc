#include "harness/contract/key_use.h"

#include "harness/contract/fold.h"
#include "harness/contract/processes.h"

namespace warmgate::contract {
namespace {

void prove(std::vector<std::size_t>& events, std::size_t i) {
  if (events.size() < kMaxProof) events.push_back(i);
}

// A file that appeared in Triton's cache and the compilation that wrote it are one thing; the
// compilation says more.
void drop_files_of_compilations(KeyUse& use) {
  std::map<std::string, std::string> key_of;  // a kernel that was seen compiling, by its name
  for (const auto& [key, late] : use.late) {
    if (late.by_plugin) key_of.emplace(late.kernel, key);
  }
  for (auto it = use.late.begin(); it != use.late.end();) {
    const auto seen = key_of.find(it->second.kernel);
    if (it->first != "triton:" + it->second.kernel || seen == key_of.end()) {
      ++it;
      continue;
    }
    for (const std::size_t i : it->second.events) prove(use.late[seen->second].events, i);
    it = use.late.erase(it);
  }
}

}  // namespace

bool is_warmed_compile(const View& view, std::size_t i) {
  const trace::Event& e = view.event(i);
  return e.ev == "compile" && e.src != "harness" && View::is_warmup(view.phase(i)) &&
         !text(e, "key").empty();
}

KeyUse key_use(const View& view) {
  KeyUse use;
  const Processes processes(view);
  std::set<int> ready;
  for (std::size_t i = 0; i < view.size(); ++i) {
    const trace::Event& e = view.event(i);
    if (e.ev == "ready" && e.src != "harness") ready.insert(rank_of(e));
    if (e.ev == "asked" && View::is_warmup(view.phase(i))) {
      for (const std::string& key : e.strings("keys")) {
        KeyUse::Warmed& warmed = use.warmed[key];
        warmed.kernel = text(e, "kernel");
        warmed.ranks.insert(rank_of(e));
        prove(warmed.events, i);
      }
    }
    if (e.ev == "launch" && view.phase(i) == "serve") {
      const std::string key(text(e, "key"));
      if (key.empty()) continue;
      KeyUse::Launched& launched = use.launched[key];
      launched.kernel = text(e, "kernel");
      if (launched.layer_kind.empty()) launched.layer_kind = text(e, "layer_kind");
      if (launched.role.empty()) launched.role = text(e, "role");
      launched.ranks.insert(rank_of(e));
      if (const auto name = text(e, "class"); !name.empty()) launched.classes.emplace(name);
      prove(launched.events, i);
    }
    if (e.ev != "compile" || e.src == "harness") continue;
    const std::string key(text(e, "key"));
    const bool plugin = e.src == "python";
    // It knows of the worker's phases, not of serving: what it saw was late by when ready was said.
    const bool after = plugin && processes.after_ready(e);
    const int rank = plugin ? processes.rank(e).value_or(0) : rank_of(e);
    if (!after && is_warmed_compile(view, i)) {
      KeyUse::Warmed& warmed = use.warmed[key];
      warmed.kernel = text(e, "kernel");
      warmed.compiled = true;
      warmed.ranks.insert(rank);
      if (text(e, "status") == "ok") warmed.ok_ranks.insert(rank);
      prove(warmed.events, i);
    }
    const bool serving = plugin ? after
                                : view.is_serving(view.phase(i)) ||
                                      (view.phase(i).empty() && ready.count(rank_of(e)) != 0);
    if (serving && text(e, "source") == "compiler") {
      KeyUse::Late& late = use.late[key.empty() ? std::string(text(e, "kernel")) : key];
      late.kernel = text(e, "kernel");
      late.phase = after ? std::string_view("serve") : view.phase(i);
      late.by_plugin = late.by_plugin || plugin;
      late.ranks.insert(rank);
      prove(late.events, i);
    }
  }
  drop_files_of_compilations(use);
  return use;
}

}  // namespace warmgate::contract
