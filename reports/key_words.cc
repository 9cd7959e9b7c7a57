#include "reports/key_words.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

namespace warmgate::reports {
namespace {

struct Key {
  std::string kernel;
  std::vector<std::pair<std::string, std::string>> fields;
};

std::optional<Key> parse(std::string_view text) {
  const std::size_t open = text.find('{');
  if (open == std::string_view::npos || open == 0 || text.back() != '}') return std::nullopt;
  Key key{std::string(text.substr(0, open)), {}};
  std::string_view rest = text.substr(open + 1, text.size() - open - 2);
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view field = rest.substr(0, comma);
    const std::size_t equals = field.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    key.fields.emplace_back(field.substr(0, equals), field.substr(equals + 1));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return key;
}

// True if all keys have the field with one value.
bool constant(const std::vector<Key>& keys, std::size_t field, const std::string& value) {
  return std::all_of(keys.begin(), keys.end(), [&](const Key& k) {
    return field < k.fields.size() && k.fields[field].second == value;
  });
}

std::string listed(const std::vector<std::string>& items) {
  std::string out;
  for (std::size_t i = 0; i < items.size() && i < 3; ++i) out += (i == 0 ? "" : ", ") + items[i];
  return items.size() > 3 ? out + " and " + std::to_string(items.size() - 3) + " more" : out;
}

}  // namespace

bool is_compile_key(const std::string& text) { return parse(text).has_value(); }

std::string short_key(const std::vector<std::string>& keys, const verdict::RunRecord* run) {
  if (keys.empty()) return "";
  std::vector<Key> group, others;
  for (const std::string& text : keys) {
    std::optional<Key> key = parse(text);
    if (!key || (!group.empty() && key->kernel != group.front().kernel)) return listed(keys);
    group.push_back(std::move(*key));
  }
  for (const char* set : {"keys_asked", "keys_warmed", "keys_launched"}) {
    if (!run || run->sets.count(set) == 0) continue;
    for (const std::string& text : run->sets.at(set)) {
      std::optional<Key> key = parse(text);
      if (key && key->kernel == group.front().kernel) others.push_back(std::move(*key));
    }
  }
  const Key& first = group.front();
  std::string fields;
  bool left_out = false;
  for (std::size_t i = 0; i < first.fields.size(); ++i) {
    const auto& [name, value] = first.fields[i];
    if (!constant(group, i, value) || (!others.empty() && constant(others, i, value))) {
      left_out = true;
      continue;
    }
    fields += (fields.empty() ? "" : ",") + name + "=" + value;
  }
  if (fields.empty()) return keys.size() > 1 ? first.kernel + "{…}" : keys.front();
  return first.kernel + "{" + fields + (left_out ? ",…}" : "}");
}

std::string with_short_keys(std::string text, const verdict::RunRecord& run) {
  if (text.find('{') == std::string::npos) return text;
  for (const char* set : {"keys_asked", "keys_warmed", "keys_launched"}) {
    const auto it = run.sets.find(set);
    if (it == run.sets.end()) continue;
    for (const std::string& key : it->second) {
      const std::size_t at = key.empty() ? std::string::npos : text.find(key);
      if (at != std::string::npos) text.replace(at, key.size(), short_key({key}, &run));
    }
  }
  return text;
}

}  // namespace warmgate::reports
