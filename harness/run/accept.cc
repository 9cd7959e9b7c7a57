#include "harness/run/accept.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "harness/run/json_text.h"
#include "harness/verdict/expectation.h"

namespace warmgate::run {

namespace fs = std::filesystem;
using nlohmann::json;
using verdict::Outcome;
using verdict::RunRecord;

namespace {

// One scenario's runs, wherever they come from.
struct Runs {
  std::string scenario;
  fs::path file;  // of the accepted sets
  std::vector<const RunRecord*> runs;
};

AcceptedFile write(const Runs& from) {
  AcceptedFile out;
  out.file = from.file;
  out.scenario = from.scenario;
  std::vector<const RunRecord*> samples;
  for (const RunRecord* run : from.runs) {
    if (verdict::is_sample(*run)) {
      samples.push_back(run);
    } else {
      out.passed_over.push_back(
          fmt::format("{}: {}, {}", run->variant, verdict::to_string(run->outcome), run->reason));
    }
  }
  if (samples.empty()) {
    throw std::runtime_error(
        fmt::format("nothing to accept for {}: {}", from.scenario,
                    out.passed_over.empty() ? "no runs" : out.passed_over.front()));
  }
  verdict::Accepted accepted = verdict::read_accepted(from.file);
  verdict::Accepted fresh = verdict::make_accepted(samples);
  for (const auto& [name, unused] : accepted.variants) {
    if (fresh.variants.count(name) == 0) out.kept.push_back(name);
  }
  for (auto& [name, variant] : fresh.variants) {
    out.variants.push_back(name);
    accepted.variants[name] = std::move(variant);
  }
  accepted.scenario = from.scenario;
  verdict::write_accepted(from.file, accepted);
  return out;
}

[[noreturn]] void refuse(const std::string& why) {
  throw scenario::ScenarioError({{"--output", 0, 0, "", why}});
}

// One file for one scenario; a folder takes each one's under the name it would have beside it.
void place(std::vector<Runs>& all, const fs::path& output) {
  std::error_code failed;
  if (!output.has_filename()) fs::create_directories(output, failed);  // "folder/"
  if (!fs::is_directory(output, failed)) {
    if (all.size() > 1) {
      refuse(fmt::format("{} scenarios do not go into one file; name a folder, e.g. {}/",
                         all.size(), output.string()));
    }
    all.front().file = output;
    return;
  }
  std::map<fs::path, std::string> taken;
  for (Runs& runs : all) {
    const std::string from = runs.file.string();
    runs.file = output / runs.file.filename();
    const auto [other, fresh] = taken.emplace(runs.file, from);
    if (!fresh) {
      refuse(fmt::format("{} and {} would both be {}; accept them apart", other->second, from,
                         runs.file.string()));
    }
  }
}

std::vector<AcceptedFile> write_all(std::vector<Runs> all, const fs::path& output) {
  if (all.empty()) throw std::runtime_error("nothing to accept: no scenario");
  if (!output.empty()) place(all, output);
  std::vector<AcceptedFile> out;
  for (const Runs& runs : all) out.push_back(write(runs));
  return out;
}

std::string text(const json& value, const char* key) {
  const auto it = value.find(key);
  return it != value.end() && it->is_string() ? it->get<std::string>() : std::string();
}

const json& list(const json& value, const char* key) {
  static const json none = json::array();
  const auto it = value.is_object() ? value.find(key) : value.end();
  return value.is_object() && it != value.end() && it->is_array() ? *it : none;
}

Outcome outcome_of(const std::string& word) {
  for (const Outcome outcome : {Outcome::kPassed, Outcome::kFailed, Outcome::kCrashed,
                                Outcome::kHung, Outcome::kIncomplete, Outcome::kSkipped}) {
    if (word == verdict::to_string(outcome)) return outcome;
  }
  return Outcome::kInfra;
}

// What make_accepted() reads of a run, and nothing else.
RunRecord run_from(const json& value, const std::string& scenario, const std::string& variant) {
  RunRecord run;
  run.scenario = scenario;
  run.variant = variant;
  run.outcome = outcome_of(text(value, "outcome"));
  run.reason = text(value, "reason");
  if (const auto figures = value.find("figures"); figures != value.end() && figures->is_object()) {
    for (const auto& [name, figure] : figures->items()) {
      if (figure.is_number()) run.figures[name] = figure.get<double>();
    }
  }
  if (const auto sets = value.find("sets"); sets != value.end() && sets->is_object()) {
    for (const auto& [name, members] : sets->items()) {
      if (!members.is_array()) continue;
      auto& set = run.sets[name];
      for (const json& member : members) {
        if (member.is_string()) set.push_back(member.get<std::string>());
      }
    }
  }
  return run;
}

fs::path accepted_path(const fs::path& scenario_file) {
  scenario::Scenario scenario;
  scenario.path = scenario_file;
  return scenario.accepted_path();
}

}  // namespace

std::vector<AcceptedFile> accept(const GateResult& result, const fs::path& output) {
  std::vector<Runs> all;
  for (const ScenarioResult& scenario : result.scenarios) {
    Runs runs{scenario.scenario.name, scenario.scenario.accepted_path(), {}};
    for (const VariantResult& variant : scenario.variants) {
      for (const RunRecord& run : variant.runs) runs.runs.push_back(&run);
    }
    all.push_back(std::move(runs));
  }
  return write_all(std::move(all), output);
}

std::vector<AcceptedFile> accept_report(const fs::path& report, const fs::path& output) {
  const json document = read_report(report);
  std::vector<Runs> all;
  std::vector<std::unique_ptr<RunRecord>> records;
  for (const json& scenario : list(document, "scenarios")) {
    const fs::path file = text(scenario, "path");
    std::error_code failed;
    if (output.empty() && !fs::exists(file, failed)) {
      throw std::runtime_error(
          fmt::format("{}: its scenario {} is not there", report.string(), file.string()));
    }
    Runs runs{text(scenario, "name"), accepted_path(file), {}};
    for (const json& variant : list(scenario, "variants")) {
      for (const json& run : list(variant, "runs")) {
        records.push_back(
            std::make_unique<RunRecord>(run_from(run, runs.scenario, text(variant, "name"))));
        runs.runs.push_back(records.back().get());
      }
    }
    all.push_back(std::move(runs));
  }
  return write_all(std::move(all), output);
}

}  // namespace warmgate::run
