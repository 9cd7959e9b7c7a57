#include "harness/plan/key_table.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace warmgate::plan {
namespace {

// `Kernel{…}` → `Kernel`; for events that carry the key alone.
std::string kernel_of(const std::string& key) { return key.substr(0, key.find('{')); }

class Builder {
 public:
  KeyTable table;

  KernelKeys& kernel(const std::string& name) {
    const auto it = std::find_if(table.kernels.begin(), table.kernels.end(),
                                 [&](const KernelKeys& k) { return k.kernel == name; });
    if (it != table.kernels.end()) return *it;
    table.kernels.push_back({name, false, {}});
    return table.kernels.back();
  }

  KeyRow& row(const std::string& kernel_name, const std::string& key) {
    auto& rows = kernel(kernel_name).rows;
    const auto [it, fresh] = index_.emplace(key, rows.size());
    if (fresh) {
      rows.emplace_back();
      rows.back().key = key;
    }
    return rows[it->second];
  }

  void arch(const std::string& name) {
    if (!name.empty() &&
        std::find(table.archs.begin(), table.archs.end(), name) == table.archs.end())
      table.archs.push_back(name);
  }

 private:
  std::map<std::string, std::size_t> index_;  // key → row in its kernel
};

// A broken verdict of anybody outweighs a good one: a lenient compiler's word is no proof.
void note(KeyState& state, bool ok) {
  if (!ok) state = KeyState::kBroken;
  if (ok && state == KeyState::kNone) state = KeyState::kOk;
}

std::string first_line(const std::string& text) {
  const std::size_t from = text.find_first_not_of("\n ");
  if (from == std::string::npos) return "";
  return text.substr(from, text.find('\n', from) - from);
}

std::string phase_of(const trace::Trace& trace, std::size_t i) {
  const std::string phase = trace.events[i].str("phase");
  return phase.empty() ? trace.phase_at(i) : phase;
}

void read_compile(Builder& out, const trace::Event& e, const std::string& phase) {
  const std::string key = e.str("key");
  if (key.empty()) return;
  KeyRow& row = out.row(e.str("kernel"), key);
  const bool ours = e.src == "harness";
  const bool ok = e.str("status") == "ok";
  if (!ours && phase == "warmup") {
    row.asked = row.compiled = true;
    row.warmed = row.warmed || ok;
  }
  if (!ok && row.why.empty()) row.why = e.str("arch") + ": " + first_line(e.str("log"));
  // Without a compiler the host half stands in, and says nothing about an architecture.
  if (e.str("backend") == "host") {
    note(row.host, ok);
    return;
  }
  out.arch(e.str("arch"));
  note(row.archs[e.str("arch")], ok);
}

void read_check(Builder& out, const trace::Event& e) {
  if (e.str("kind") != "host_key") return;
  const std::string key = e.str("tensor"), kernel = e.str("kernel");
  KeyRow& row = out.row(kernel.empty() ? kernel_of(key) : kernel, key);
  note(row.host, e.flag("ok"));
  if (e.flag("ok")) return;
  // The host names the expression and its operands; a compiler often only the line.
  row.why = e.str("fault");
  if (const std::string message = e.str("message"); !message.empty())
    row.why += (row.why.empty() ? "" : ": ") + message;
}

void read_launch(Builder& out, const trace::Event& e, const std::string& phase) {
  const std::string key = e.str("key");
  if (key.empty() || phase != "serve") return;
  KeyRow& row = out.row(e.str("kernel"), key);
  row.launched = true;
  if (e.flag("final")) row.launches += e.num("count");
}

}  // namespace

std::string_view to_string(KeyState state) {
  switch (state) {
    case KeyState::kNone:
      return "not observed";
    case KeyState::kOk:
      return "ok";
    case KeyState::kBroken:
      return "broken";
  }
  return "";
}

bool KeyRow::invalid() const {
  return host == KeyState::kBroken ||
         std::any_of(archs.begin(), archs.end(),
                     [](const auto& entry) { return entry.second == KeyState::kBroken; });
}

std::size_t KernelKeys::count(bool KeyRow::*field) const {
  return static_cast<std::size_t>(
      std::count_if(rows.begin(), rows.end(), [&](const KeyRow& r) { return r.*field; }));
}

std::size_t KernelKeys::invalid() const {
  return static_cast<std::size_t>(std::count_if(
      rows.begin(), rows.end(), [](const KeyRow& r) { return r.asked && r.invalid(); }));
}

std::size_t KernelKeys::never_compiled() const {
  return static_cast<std::size_t>(std::count_if(
      rows.begin(), rows.end(), [](const KeyRow& r) { return r.asked && !r.compiled; }));
}

std::size_t KernelKeys::launched_not_warmed() const {
  return static_cast<std::size_t>(std::count_if(
      rows.begin(), rows.end(), [](const KeyRow& r) { return r.launched && !r.warmed; }));
}

std::size_t KernelKeys::asked_not_reachable() const {
  if (!domain_known) return 0;
  return static_cast<std::size_t>(std::count_if(
      rows.begin(), rows.end(), [](const KeyRow& r) { return r.asked && !r.reachable; }));
}

KeyTable key_table(const trace::Trace& trace, std::vector<std::string> archs) {
  Builder out;
  out.table.archs = std::move(archs);
  for (const trace::Event* e : trace.of("asked")) {
    for (const std::string& key : e->strings("keys")) out.row(e->str("kernel"), key).asked = true;
  }
  // Asked for first, then launched, then what is only reachable.
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    const trace::Event& e = trace.events[i];
    if (e.ev == "compile") read_compile(out, e, phase_of(trace, i));
    if (e.ev == "check") read_check(out, e);
  }
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    if (trace.events[i].ev == "launch") read_launch(out, trace.events[i], phase_of(trace, i));
  }
  for (const trace::Event* e : trace.of("domain")) {
    out.kernel(e->str("kernel")).domain_known = true;
    for (const std::string& key : e->strings("keys"))
      out.row(e->str("kernel"), key).reachable = true;
  }
  for (const std::string& arch : out.table.archs) {
    const bool seen =
        std::any_of(out.table.kernels.begin(), out.table.kernels.end(), [&](const KernelKeys& k) {
          return std::any_of(k.rows.begin(), k.rows.end(),
                             [&](const KeyRow& r) { return r.archs.count(arch) > 0; });
        });
    if (!seen) out.table.not_observed.push_back(arch + ": nobody compiled for it");
  }
  return std::move(out.table);
}

nlohmann::ordered_json to_json(const KeyTable& table) {
  using Json = nlohmann::ordered_json;
  Json out;
  out["architectures"] = table.archs;
  out["kernels"] = Json::array();
  for (const KernelKeys& k : table.kernels) {
    Json kernel;
    kernel["kernel"] = k.kernel;
    kernel["asked"] = k.asked();
    kernel["warmed"] = k.warmed();
    kernel["reachable"] = k.domain_known ? Json(k.reachable()) : Json(nullptr);
    kernel["launched"] = k.launched();
    kernel["invalid"] = k.invalid();
    kernel["never_compiled"] = k.never_compiled();
    kernel["launched_not_warmed"] = k.launched_not_warmed();
    kernel["asked_not_reachable"] = k.domain_known ? Json(k.asked_not_reachable()) : Json(nullptr);
    kernel["keys"] = Json::array();
    for (const KeyRow& r : k.rows) {
      Json archs = Json::object();
      for (const std::string& arch : table.archs) {
        const auto it = r.archs.find(arch);
        archs[arch] = to_string(it == r.archs.end() ? KeyState::kNone : it->second);
      }
      kernel["keys"].push_back({{"key", r.key},
                                {"asked", r.asked},
                                {"compiled", r.compiled},
                                {"warmed", r.warmed},
                                {"reachable", k.domain_known ? Json(r.reachable) : Json(nullptr)},
                                {"launched", r.launched},
                                {"launches", r.launches},
                                {"invalid", r.invalid()},
                                {"host", to_string(r.host)},
                                {"architectures", std::move(archs)},
                                {"why", r.why}});
    }
    out["kernels"].push_back(std::move(kernel));
  }
  out["not_observed"] = table.not_observed;
  return out;
}

}  // namespace warmgate::plan
