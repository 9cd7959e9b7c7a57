// The evidence for programs.
#include <cmath>
#include <nlohmann/json.hpp>

#include "reports/evidence.h"

namespace warmgate::reports {

nlohmann::ordered_json evidence_json(const EvidenceTable& table) {
  using Json = nlohmann::ordered_json;
  Json rows = Json::array(), excerpts = Json::array();
  for (const EvidenceRow& row : table.rows) {
    Json cells = Json::array();
    for (const EvidenceCell& cell : row.cells) {
      Json one;
      one["value"] = cell.value && std::isfinite(*cell.value) ? Json(*cell.value) : Json(nullptr);
      one["text"] = cell.observed() ? Json(cell.text) : Json(nullptr);
      one["not_observed"] = cell.observed() ? Json(nullptr) : Json(cell.why);
      cells.push_back(std::move(one));
    }
    Json item;
    item["group"] = row.group;
    item["name"] = row.name;
    item["label"] = row.label;
    item["unit"] = row.unit;
    item["cells"] = std::move(cells);
    rows.push_back(std::move(item));
  }
  for (const LogExcerpt& excerpt : table.excerpts) {
    Json item;
    item["side"] = table.sides.at(excerpt.side);
    item["source"] = excerpt.source;
    item["lines"] = excerpt.lines;
    item["fault_line"] = excerpt.fault ? Json(*excerpt.fault) : Json(nullptr);
    excerpts.push_back(std::move(item));
  }
  Json out;
  out["sides"] = table.sides;
  out["rows"] = std::move(rows);
  out["excerpts"] = std::move(excerpts);
  return out;
}

nlohmann::ordered_json run_evidence_json(const verdict::RunRecord& run) {
  using Json = nlohmann::ordered_json;
  const RunEvidence evidence = run_evidence(run);
  const auto integer = [](const std::optional<std::int64_t>& value) {
    return value ? Json(*value) : Json(nullptr);
  };
  Json out;
  out["clocks_s"] = Json::object();
  for (const auto& [name, value] : evidence.clocks_s)
    if (std::isfinite(value)) out["clocks_s"][name] = value;
  out["phases_s"] = Json::object();
  for (const auto& [name, value] : evidence.phases_s)
    if (std::isfinite(value)) out["phases_s"][name] = value;
  out["requests_ok"] = integer(evidence.requests_ok);
  out["requests_ended"] = integer(evidence.requests_ended);
  return out;
}

}  // namespace warmgate::reports
