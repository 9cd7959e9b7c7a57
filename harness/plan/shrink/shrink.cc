#include "harness/plan/shrink/shrink.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "harness/plan/shrink/coverage.h"
#include "harness/plan/shrink/family.h"
#include "harness/plan/shrink/scenario_file.h"
#include "harness/plan/shrink/tokenizer.h"

namespace warmgate::plan::shrink {
namespace {

void check_request(const Request& request, Complaints& complaints) {
  const Parallel& p = request.parallel;
  if (p.ep > 1 && p.ep % p.tp != 0 && p.tp % p.ep != 0)
    complaints.add("", fmt::format("--ep {} and --tp {} do not divide each other", p.ep, p.tp));
}

// What was promised, read again from what was written. A difference is our mistake.
void check_promises(const Result& r, Parallel parallel) {
  Complaints complaints("the small config");
  const Structure again = read_structure(r.config, complaints);
  check_parallel(r.config, again, parallel, complaints);
  complaints.throw_if_any();
  if (again.pairs() != r.before.pairs())
    throw std::logic_error("shrink: a kind of layer was lost or made");
  if (again.taps.size() != r.before.taps.size() || again.draft != r.before.draft)
    throw std::logic_error("shrink: the drafter changed");
}

}  // namespace

std::int64_t allowed_for_weights(std::int64_t memory_bytes) {
  return std::max(memory_bytes - 4 * kGiB, memory_bytes / 2);
}

Result shrink_text(std::string_view text, const std::string& file, const Request& request) {
  Complaints complaints(file);
  const Json config = parse_config(text, complaints);
  complaints.throw_if_any();
  Result r;
  r.before = read_structure(config, complaints);
  complaints.throw_if_any();
  check_request(request, complaints);
  check_parallel(config, r.before, request.parallel, complaints);
  r.selection = select_layers(r.before, request.per_kind);
  const std::int64_t experts =
      select_experts(r.before.experts, request.parallel.ep, request.experts, complaints);
  complaints.throw_if_any();
  r.config = rewrite(config, r.before, r.selection, experts, r.changes, complaints);
  complaints.throw_if_any();
  check_promises(r, request.parallel);
  r.after = read_structure(r.config, complaints);

  const WeightList small = weigh(r.config, r.after, request.parallel, complaints);
  r.weights = small.weights();
  r.bytes = small.bytes();
  r.bytes_per_rank = small.bytes_per_rank();
  r.full_bytes = weigh(config, r.before, request.parallel, complaints).bytes();
  r.memory_bytes = request.memory_bytes;
  r.allowed_bytes = allowed_for_weights(request.memory_bytes);
  r.notes = weight_notes(config);
  if (config.contains("auto_map"))
    r.notes.push_back(
        "auto_map is left out: the Python files it names are not in the folder, and the "
        "engine's own model is started");

  StartWish wish{request.out.empty() ? "DIR" : request.out.lexically_normal().string(),
                 request.parallel, request.tokenizer_stub, 0};
  if (wish.folder.size() > 1 && wish.folder.back() == '/') wish.folder.pop_back();
  if (config.contains("dspark_block_size") && !r.after.taps.empty())
    wish.block = config.at("dspark_block_size").get<std::int64_t>();
  r.lines = start_lines(r.after, wish);
  r.files["config.json"] = config_text(r.config);
  for (const StartLine& line : r.lines) r.files.insert(line.files.begin(), line.files.end());
  if (request.tokenizer_stub) r.files.merge(tokenizer_stub(r.config, complaints));
  if (!request.scenario.empty()) r.scenario = scenario_text(r, request, complaints);
  complaints.throw_if_any();
  say_coverage(r, request);
  return r;
}

Result shrink(const Request& request) {
  Complaints complaints(request.config.string());
  const std::string text = read_config_text(request.config, complaints);
  complaints.throw_if_any();
  return shrink_text(text, request.config.string(), request);
}

nlohmann::ordered_json to_json(const Result& r) {
  nlohmann::ordered_json out;
  out["schema"] = kShrinkSchema;
  out["model_type"] = r.before.model_type;
  out["layers"] = {{"before", r.before.layers()}, {"after", r.after.layers()}};
  out["experts"] = {{"before", r.before.experts.count}, {"after", r.after.experts.count}};
  nlohmann::ordered_json layers = nlohmann::ordered_json::array();
  const auto total = r.after.layers() + static_cast<std::int64_t>(r.after.draft.size());
  for (std::int64_t id = 0; id < total; ++id) {
    const Pair pair = r.after.pair_of(id);
    const std::int64_t was = id < r.after.layers() ? r.selection.kept[static_cast<std::size_t>(id)]
                                                   : r.before.layers() + id - r.after.layers();
    layers.push_back(
        {{"id", id}, {"was", was}, {"kind", pair.first.text()}, {"role", to_string(pair.second)}});
  }
  out["kept"] = layers;
  out["taps"] = {{"key", r.after.taps_key}, {"before", r.before.taps}, {"after", r.after.taps}};
  out["changes"] = nlohmann::ordered_json::array();
  for (const Change& c : r.changes)
    out["changes"].push_back({{"key", c.key}, {"from", c.from}, {"to", c.to}});
  nlohmann::ordered_json items = nlohmann::ordered_json::array();
  for (const Weight& w : r.weights)
    items.push_back({{"name", w.name},
                     {"layers", w.count},
                     {"elements_per_layer", w.elements},
                     {"bytes_per_element", w.bytes_each},
                     {"ranks", w.shards},
                     {"bytes", w.bytes()}});
  out["weights"] = {{"bytes", r.bytes},
                    {"bytes_per_rank", r.bytes_per_rank},
                    {"bytes_of_the_full_model", r.full_bytes},
                    {"memory_bytes", r.memory_bytes},
                    {"allowed_bytes", r.allowed_bytes},
                    {"fits", r.fits()},
                    {"items", items}};
  out["notes"] = r.notes;
  out["covers"] = r.covers;
  out["cannot_show"] = r.cannot_show;
  out["gates"] = r.gates;
  out["start"] = nlohmann::ordered_json::array();
  for (const StartLine& line : r.lines)
    out["start"].push_back({{"preset", line.preset},
                            {"argv", line.argv()},
                            {"env", line.env},
                            {"shell", shell_text(line)},
                            {"note", line.note}});
  out["files"] = nlohmann::ordered_json::array();
  for (const auto& [name, text] : r.files) out["files"].push_back(name);
  return out;
}

}  // namespace warmgate::plan::shrink
