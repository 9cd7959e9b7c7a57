#include "harness/plan/shrink/rewrite.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "harness/plan/shrink/reader.h"

namespace warmgate::plan::shrink {
namespace {

// How many of the first `first` layers stay. Beyond the end the distance to it stays, so that a
// boundary that no layer reaches is still one.
std::int64_t new_boundary(const Structure& s, const Selection& selection, std::int64_t first) {
  if (first > s.layers())
    return static_cast<std::int64_t>(selection.kept.size()) + first - s.layers();
  return std::count_if(selection.kept.begin(), selection.kept.end(),
                       [&](std::int64_t id) { return id < first; });
}

Json pick(const Json& list, const Structure& s, const Selection& selection) {
  Json out = Json::array();
  for (const std::int64_t id : selection.kept) out.push_back(list.at(static_cast<std::size_t>(id)));
  for (std::size_t i = s.target.size(); i < list.size(); ++i) out.push_back(list[i]);
  return out;
}

// "model.layers.40.mlp.experts.7.w1": where the number behind `word` stands.
struct Number {
  std::size_t begin, end;
  std::int64_t id;
};
std::optional<Number> number_behind(const std::string& name, std::string_view word) {
  for (std::size_t at = name.find(word); at != std::string::npos; at = name.find(word, at + 1)) {
    if (at > 0 && name[at - 1] != '.') continue;
    const std::size_t begin = at + word.size();
    std::size_t end = begin;
    while (end < name.size() && name[end] >= '0' && name[end] <= '9' && end - begin < 9) ++end;
    if (end == begin || (end < name.size() && name[end] != '.')) continue;
    return Number{begin, end, std::stoll(name.substr(begin, end - begin))};
  }
  return std::nullopt;
}

class Names {
 public:
  Names(const Structure& s, const Selection& selection, std::int64_t experts,
        Complaints& complaints)
      : s_(s), selection_(selection), experts_(experts), complaints_(complaints) {}

  /// Null if what is named is gone.
  std::optional<Json> rewritten(const Json& value, const std::string& path) {
    if (value.is_string()) {
      const auto name = rename(value.get<std::string>(), path);
      return name ? std::optional<Json>(*name) : std::nullopt;
    }
    if (value.is_array()) {
      Json out = Json::array();
      for (std::size_t i = 0; i < value.size(); ++i) {
        if (auto item = rewritten(value[i], fmt::format("{}[{}]", path, i)))
          out.push_back(std::move(*item));
      }
      return out;
    }
    if (value.is_object()) {
      Json out = Json::object();
      for (const auto& [key, item] : value.items()) {
        const auto name = rename(key, path);
        if (!name) continue;
        if (auto inner = rewritten(item, path + "." + key)) out[*name] = std::move(*inner);
      }
      return out;
    }
    return value;
  }

 private:
  std::optional<std::string> rename(const std::string& name, const std::string& path) {
    if (const auto expert = number_behind(name, "experts."); expert && expert->id >= experts_)
      return std::nullopt;
    const auto number = number_behind(name, "layers.");
    if (!number) {
      // A regular expression or a range over ids: "re:.*layers\.(4[0-2])\..*".
      const std::size_t at = name.find("layers");
      if (at != std::string::npos && name.find_first_of("0123456789", at) != std::string::npos)
        complaints_.add(path, "is " + shown_value(Json(name)) +
                                  ": a pattern over layer ids cannot be renumbered");
      return name;
    }
    const std::int64_t id = new_id(s_, selection_, number->id);
    if (id < 0) return std::nullopt;
    return name.substr(0, number->begin) + std::to_string(id) + name.substr(number->end);
  }

  const Structure& s_;
  const Selection& selection_;
  std::int64_t experts_;
  Complaints& complaints_;
};

std::string brief(const Json& value) {
  const std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() <= 60) return text;
  if (value.is_array()) return fmt::format("{} entries", value.size());
  if (value.is_object()) return fmt::format("{} keys", value.size());
  return text.substr(0, 57) + "...";
}

}  // namespace

std::int64_t new_id(const Structure& s, const Selection& selection, std::int64_t old_id) {
  if (old_id >= s.layers())
    return static_cast<std::int64_t>(selection.kept.size()) + old_id - s.layers();
  const auto at = std::lower_bound(selection.kept.begin(), selection.kept.end(), old_id);
  return at != selection.kept.end() && *at == old_id ? at - selection.kept.begin() : -1;
}

Json rewrite(const Json& config, const Structure& s, const Selection& selection,
             std::int64_t experts, std::vector<Change>& changes, Complaints& complaints) {
  Json out = config;
  out["num_hidden_layers"] = selection.kept.size();
  for (const std::string& key : s.lists) out[key] = pick(config.at(key), s, selection);
  if (!s.pattern.empty()) {
    std::string letters;
    for (const std::int64_t id : selection.kept)
      letters +=
          config.at(s.pattern).get_ref<const std::string&>().at(static_cast<std::size_t>(id));
    out[s.pattern] = letters;
  }
  // With a period the first layers stay, and so does every number of them.
  for (const std::string& key : s.boundaries)
    if (s.periods.empty())
      out[key] = new_boundary(s, selection, config.at(key).get<std::int64_t>());
  for (const std::string& key : s.id_lists) {
    Json ids = Json::array();
    for (const Json& old : config.at(key)) {
      const std::int64_t id = new_id(s, selection, old.get<std::int64_t>());
      if (id >= 0) ids.push_back(id);
    }
    out[key] = ids;
  }
  if (!s.taps_key.empty()) out[s.taps_key] = selection.taps;
  if (!s.experts.key.empty()) out[s.experts.key] = experts;
  // The files that it names are not in the folder; engines have these models built in.
  out.erase("auto_map");
  if (config.contains("quantization_config")) {
    Names names(s, selection, experts, complaints);
    if (auto value = names.rewritten(config.at("quantization_config"), "quantization_config"))
      out["quantization_config"] = *value;
  }
  for (const auto& [key, value] : config.items()) {
    const auto now = out.find(key);
    if (now == out.end()) {
      changes.push_back({key, brief(value), "left out"});
    } else if (*now != value) {
      changes.push_back({key, brief(value), brief(*now)});
    }
  }
  return out;
}

}  // namespace warmgate::plan::shrink
