// A model's config made small enough to start in a minute, with everything that a start can break
// on still in it: fewer layers and experts, every (kind, role) of a layer kept, no width touched.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "harness/plan/shrink/rewrite.h"
#include "harness/plan/shrink/start_lines.h"
#include "harness/plan/shrink/weights.h"

namespace warmgate::plan::shrink {

inline constexpr const char* kShrinkSchema = "shrink/1.0";
inline constexpr std::int64_t kGiB = std::int64_t{1} << 30;

struct Request {
  std::filesystem::path config, out;
  Parallel parallel;
  std::int64_t memory_bytes = 16 * kGiB;  // of one rank
  std::int64_t per_kind = 1;              // layers of each (kind, role), where there are so many
  std::optional<std::int64_t> experts;
  bool tokenizer_stub = false;
  bool force = false;              // write into a folder that is not empty
  std::filesystem::path scenario;  // a gate scenario to write as well; "" = none
  std::string preset = "vllm";     // the server that it starts
};

struct Result {
  Json config;
  Structure before, after;
  Selection selection;
  std::vector<Change> changes;
  std::vector<Weight> weights;  // of the small model
  double bytes = 0, bytes_per_rank = 0, full_bytes = 0;
  std::int64_t memory_bytes = 0, allowed_bytes = 0;  // of which the weights may take
  std::vector<std::string> notes;
  std::vector<std::string> covers, cannot_show, gates;
  std::vector<StartLine> lines;
  std::map<std::string, std::string> files;  // of the folder, by name
  std::string scenario;                      // text of the gate scenario
  bool fits() const { return bytes_per_rank <= static_cast<double>(allowed_bytes); }
};

/// Of `memory`, what weights may take: the rest is for the context, activations, graphs and a KV
/// pool. All but 4 GiB, and never less than half.
std::int64_t allowed_for_weights(std::int64_t memory_bytes);

/// Reads the config and works everything out; writes nothing. Throws scenario::ScenarioError that
/// names each key it stumbles over.
Result shrink(const Request& request);

/// The same from a text, for tests; `file` is what complaints call it.
Result shrink_text(std::string_view text, const std::string& file, const Request& request);

/// Writes the files and the scenario, all or none; config.json comes last. Throws ScenarioError if
/// the folder holds something and `force` is not given, if it is the folder of the config itself or
/// cannot be one, if the scenario would be one of its files; std::runtime_error if writing fails.
void write_folder(const Result& result, const Request& request);

nlohmann::ordered_json to_json(const Result& result);

}  // namespace warmgate::plan::shrink
