#include "harness/verdict/compare/accepted.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "harness/trace/vocabulary.h"

namespace warmgate::verdict {
namespace {

using nlohmann::json;

[[noreturn]] void refuse(const std::filesystem::path& file, const std::string& why) {
  throw std::runtime_error(file.string() + ": " + why);
}

void check_schema(const std::filesystem::path& file, const json& document) {
  const auto it = document.find("schema");
  if (it == document.end() || !it->is_string()) refuse(file, "field 'schema' is missing");
  const std::string schema = it->get<std::string>();
  const std::string_view prefix = "accepted/";
  if (schema.compare(0, prefix.size(), prefix) != 0)
    refuse(file, fmt::format("schema is '{}', not {}", schema, kAcceptedSchema));
  const std::string major = schema.substr(prefix.size(), schema.find('.') - prefix.size());
  if (major != "1")
    refuse(file,
           fmt::format("schema {} is newer than this program reads ({})", schema, kAcceptedSchema));
}

AcceptedVariant variant_from(const json& value) {
  AcceptedVariant out;
  if (const auto sets = value.find("sets"); sets != value.end() && sets->is_object())
    for (const auto& [name, members] : sets->items()) {
      if (!members.is_array()) continue;
      auto& set = out.sets[name];
      for (const json& member : members)
        if (member.is_string()) set.insert(member.get<std::string>());
    }
  if (const auto counts = value.find("counts"); counts != value.end() && counts->is_object())
    for (const auto& [name, count] : counts->items())
      if (count.is_number() && std::isfinite(count.get<double>()))
        out.counts[name] = count.get<double>();
  return out;
}

json number(double value) {
  if (std::nearbyint(value) == value && std::abs(value) < 9e15)
    return static_cast<std::int64_t>(value);
  return value;
}

// Times and memory of the host differ from run to run and are no counts.
bool is_count(const std::string& name) {
  const trace::FigureRule* rule = trace::find_figure(name);
  return rule && rule->unit != kTimeUnit && name != "peak_rss_bytes";
}

}  // namespace

const AcceptedVariant* Accepted::find(std::string_view variant) const {
  auto it = variants.find(std::string(variant));
  if (it == variants.end()) it = variants.find(base_name(variant));
  return it == variants.end() ? nullptr : &it->second;
}

Accepted make_accepted(const std::vector<const RunRecord*>& runs) {
  Accepted out;
  for (const RunRecord* run : runs) {
    out.scenario = run->scenario;
    if (run->outcome == Outcome::kInfra || run->outcome == Outcome::kSkipped) continue;
    AcceptedVariant& variant = out.variants[run->variant];
    for (const auto& [name, members] : run->sets)
      variant.sets[name].insert(members.begin(), members.end());
    for (const auto& [name, value] : run->figures)
      if (is_count(name)) variant.counts[name] = value;
  }
  return out;
}

Accepted read_accepted(const std::filesystem::path& file) {
  Accepted out;
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return out;
  if (!std::filesystem::is_regular_file(file, error)) refuse(file, "is no regular file");
  std::ifstream in(file);
  if (!in) refuse(file, "cannot be read");
  const json document = json::parse(in, nullptr, false);
  if (!document.is_object()) refuse(file, "is not a JSON object");
  check_schema(file, document);
  if (const auto name = document.find("scenario"); name != document.end() && name->is_string())
    out.scenario = name->get<std::string>();
  const auto variants = document.find("variants");
  if (variants == document.end() || !variants->is_object())
    refuse(file, "field 'variants' is missing or not an object");
  for (const auto& [name, value] : variants->items()) {
    if (!value.is_object()) refuse(file, "variants." + name + " is not an object");
    out.variants[name] = variant_from(value);
  }
  return out;
}

void write_accepted(const std::filesystem::path& file, const Accepted& accepted) {
  json document = {{"schema", kAcceptedSchema}, {"scenario", accepted.scenario}};
  json& variants = document["variants"] = json::object();
  for (const auto& [name, variant] : accepted.variants) {
    json counts = json::object();
    for (const auto& [figure, value] : variant.counts) counts[figure] = number(value);
    variants[name] = {{"sets", variant.sets}, {"counts", counts}};
  }
  const std::filesystem::path beside =
      file.string() + fmt::format(".{}.tmp", static_cast<long>(::getpid()));
  {
    std::ofstream out(beside, std::ios::trunc);
    out << document.dump(2, ' ', false, json::error_handler_t::replace) << '\n';
    out.flush();
    if (!out) {
      std::error_code ignored;
      std::filesystem::remove(beside, ignored);
      refuse(file, "cannot be written");
    }
  }
  std::error_code error;
  std::filesystem::rename(beside, file, error);
  if (error) {
    std::filesystem::remove(beside, error);
    refuse(file, "cannot be replaced");
  }
}

}  // namespace warmgate::verdict
