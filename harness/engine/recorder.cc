#include "harness/engine/recorder.h"

#include <cmath>
#include <cstring>

namespace warmgate::engine {

namespace {

constexpr std::size_t kFirstAliases = 256, kMostAliases = 1 << 16;
constexpr std::int64_t kSilenceNs = 1'000'000'000;

}  // namespace

ResourceMissing::ResourceMissing(const std::string& message, LayerRef layer_in,
                                 std::string resource_in, std::string function_in,
                                 std::string file_in, int line_in)
    : std::runtime_error(message),
      layer(layer_in),
      resource(std::move(resource_in)),
      function(std::move(function_in)),
      file(std::move(file_in)),
      line(line_in) {}

void Recorder::phase_begin(std::string_view phase) {
  phase_ = phase;
  send(trace::Line("phase_begin").str("phase", phase));
}

void Recorder::phase_end(std::string_view status, const trace::Line* extra) {
  flush_collectives();
  trace::Line line("phase_end");
  line.str("phase", phase_).str("status", status);
  count_launches(line);
  if (extra != nullptr) {
    // `{"ev":"name","key":rest` — the fields are the text behind the first comma, and a comma
    // cannot be part of the name: no kind of event has one.
    const std::string_view text = extra->text();
    const std::size_t comma = text.find(',');
    if (comma != std::string_view::npos) {
      const std::string_view fields = text.substr(comma + 2);
      const std::size_t quote = fields.find('"');
      line.raw(fields.substr(0, quote), fields.substr(quote + 2));
    }
  }
  send(line);
  once_.clear();
  phase_.clear();
}

std::size_t Recorder::hash(const Alias& a) {
  std::uint64_t h = reinterpret_cast<std::uintptr_t>(a.signature);
  h = h * 0x9e3779b97f4a7c15u ^ reinterpret_cast<std::uintptr_t>(a.kernel);
  h = h * 0x9e3779b97f4a7c15u ^ reinterpret_cast<std::uintptr_t>(a.key);
  h = h * 0x9e3779b97f4a7c15u ^ reinterpret_cast<std::uintptr_t>(a.kind);
  h = h * 0x9e3779b97f4a7c15u ^ reinterpret_cast<std::uintptr_t>(a.role);
  h *= 0xff51afd7ed558ccdu;
  return static_cast<std::size_t>(h ^ h >> 32);
}

bool Recorder::launch(std::string_view kernel, std::string_view key, std::string_view signature,
                      const LayerRef& layer, std::int64_t rows) {
  const Alias wanted{kernel.data(),     key.data(),        signature.data(),
                     layer.kind.data(), layer.role.data(), nullptr};
  const std::size_t mask = aliases_.size() - 1;  // unused while there are none
  for (std::size_t i = hash(wanted); !aliases_.empty(); ++i) {
    const Alias& alias = aliases_[i & mask];
    if (alias.launch == nullptr) break;
    if (alias.signature != wanted.signature || alias.kernel != wanted.kernel ||
        alias.key != wanted.key || alias.kind != wanted.kind || alias.role != wanted.role)
      continue;
    Launch& seen = *alias.launch;
    if (seen.signature == signature && seen.kernel == kernel && seen.key == key &&
        seen.kind == layer.kind && seen.role == layer.role) {
      ++seen.count;
      seen.rows += rows;
      return false;
    }
    break;  // the memory was reused for other texts
  }
  Alias fresh = wanted;
  fresh.launch = find_or_add(kernel, key, signature, layer, rows);
  remember(fresh);
  return fresh.launch->count == 1;
}

Recorder::Launch* Recorder::find_or_add(std::string_view kernel, std::string_view key,
                                        std::string_view signature, const LayerRef& layer,
                                        std::int64_t rows) {
  std::string texts;
  texts.reserve(kernel.size() + key.size() + signature.size() + 32);
  for (const std::string_view text : {kernel, key, signature, layer.kind, layer.role}) {
    texts += text;
    texts += '\x1f';
  }
  const auto [it, is_new] = by_texts_.try_emplace(std::move(texts), nullptr);
  if (is_new) {
    launches_.push_back({std::string(kernel), std::string(key), std::string(signature),
                         std::string(layer.kind), std::string(layer.role), layer.id,
                         static_cast<std::int64_t>(launches_.size()), 1, rows});
    it->second = &launches_.back();
    tell(launches_.back(), false);
  } else {
    ++it->second->count;
    it->second->rows += rows;
  }
  return it->second;
}

void Recorder::remember(const Alias& fresh) {
  if (aliases_.empty()) aliases_.resize(kFirstAliases);
  if (alias_count_ * 2 >= aliases_.size()) {
    std::vector<Alias> old;
    // Callers that pass temporaries name one launch by ever new addresses: then start afresh.
    const bool full = aliases_.size() >= kMostAliases;
    old.swap(aliases_);
    aliases_.resize(full ? kFirstAliases : old.size() * 2);
    alias_count_ = 0;
    if (!full) {
      for (const Alias& alias : old) {
        if (alias.launch != nullptr) remember(alias);
      }
    }
  }
  const std::size_t mask = aliases_.size() - 1;
  std::size_t i = hash(fresh);
  for (;; ++i) {
    Alias& slot = aliases_[i & mask];
    const bool same = slot.signature == fresh.signature && slot.kernel == fresh.kernel &&
                      slot.key == fresh.key && slot.kind == fresh.kind && slot.role == fresh.role;
    if (slot.launch != nullptr && !same) continue;
    if (slot.launch == nullptr) ++alias_count_;
    slot = fresh;
    return;
  }
}

void Recorder::tell(const Launch& launch, bool final) const {
  trace::Line line("launch");
  line.str("kernel", launch.kernel).str("key", launch.key).str("signature", launch.signature);
  line.num("layer", launch.layer).str("layer_kind", launch.kind).str("role", launch.role);
  line.str("phase", phase_).num("rows", launch.rows).num("site", launch.site);
  if (final) line.num("count", launch.count).flag("final", true);
  send(line);
}

void Recorder::count_launches(trace::Line& phase_end) {
  std::string counts = "[";
  for (const Launch& launch : launches_) {
    if (!launch.key.empty()) tell(launch, true);
    if (counts.size() > 1) counts += ',';
    counts += '[';
    counts += std::to_string(launch.site);
    counts += ',';
    counts += std::to_string(launch.count);
    counts += ',';
    counts += std::to_string(launch.rows);
    counts += ']';
  }
  if (!launches_.empty()) phase_end.raw("launches", counts + "]");
  launches_.clear();
  by_texts_.clear();
  aliases_.assign(aliases_.size(), {});
  alias_count_ = 0;
}

void Recorder::collective(std::string_view communicator, std::string_view kind, std::int64_t bytes,
                          std::int64_t seq) {
  if (run_.count > 0 && run_.bytes == bytes && run_.seq + run_.count == seq && run_.kind == kind &&
      run_.communicator == communicator) {
    ++run_.count;
    return;
  }
  flush_collectives();
  run_.communicator = communicator;
  run_.kind = kind;
  run_.bytes = bytes;
  run_.seq = seq;
  run_.count = 1;
}

void Recorder::flush_collectives() {
  if (run_.count == 0) return;
  trace::Line line("collective");
  line.str("communicator", run_.communicator).str("kind", run_.kind).num("bytes", run_.bytes);
  line.num("seq", run_.seq).num("count", run_.count).str("phase", phase_);
  run_.count = 0;
  send(line);
}

void Recorder::once(const trace::Line& line) {
  if (once_.insert(line.text()).second) send(line);
}

void Recorder::send(const trace::Line& line) const {
  writer_.send(line, last_sent_ns_ = trace::now_ns());
}

void Recorder::counter(std::string_view name, double value) {
  constexpr double kExact = 9007199254740992.0;  // 2^53: whole numbers below are written as such
  trace::Line line("counter");
  line.str("name", name);
  if (std::abs(value) < kExact && value == std::trunc(value)) {
    line.num("value", static_cast<std::int64_t>(value));
  } else {
    line.real("value", value);
  }
  send(line);
}

void Recorder::stage(std::string_view stage, std::string_view status) {
  send(trace::Line("stage").str("stage", stage).str("status", status).str("phase", phase_));
}

void Recorder::skip(std::string_view step, std::string_view reason, bool declared) {
  trace::Line line("skip");
  line.str("step", step).str("reason", reason).flag("declared", declared).str("phase", phase_);
  send(line);
}

void Recorder::heartbeat() {
  if (trace::now_ns() - last_sent_ns_ < kSilenceNs) return;
  send(trace::Line("heartbeat").str("phase", phase_));
}

}  // namespace warmgate::engine
