// What is asked: prompts that no cache can know, and bodies made of the preset's template.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "harness/target/server/workload.h"

namespace warmgate::target {

using nlohmann::json;

namespace {

// Four letters each, one token each in the usual vocabularies.
constexpr std::array<std::string_view, 64> kWords = {
    "able", "area", "army", "away", "baby", "back", "ball", "bank", "base", "blue", "body",
    "book", "call", "care", "case", "city", "club", "cold", "cost", "date", "dead", "deal",
    "door", "down", "east", "face", "fact", "fall", "film", "fire", "food", "foot", "form",
    "game", "girl", "goal", "gold", "half", "hand", "head", "help", "high", "home", "hour",
    "idea", "king", "land", "life", "line", "list", "love", "main", "mind", "moon", "name",
    "news", "page", "part", "road", "room", "side", "time", "wall", "year"};

std::uint64_t mix(std::uint64_t x) {  // splitmix64
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

std::uint64_t draw(std::uint64_t seed, std::int64_t ordinal, std::int64_t position) {
  return mix(mix(seed + 1) ^ mix(static_cast<std::uint64_t>(ordinal)) * 3 ^
             mix(static_cast<std::uint64_t>(position)) * 7);
}

// The first `digits` symbols of an alphabet of `size` spell the ordinal, so that no two prompts
// share more than a few tokens of their beginning; the rest is random.
struct Alphabet {
  std::uint64_t seed, size;
  std::int64_t digits = 1;

  Alphabet(std::uint64_t s, std::uint64_t n, std::int64_t requests) : seed(s), size(n) {
    if (size < 2) return;
    for (auto rest = static_cast<std::uint64_t>(requests) / size; rest > 0; rest /= size) ++digits;
  }
  std::uint64_t symbol(std::int64_t ordinal, std::int64_t position) const {
    if (position >= digits) return draw(seed, ordinal, position) % size;
    auto rest = static_cast<std::uint64_t>(ordinal - 1);
    for (std::int64_t i = 0; i < position; ++i) rest /= size;
    return (rest + mix(seed)) % size;
  }
};

json prompt(const WorkloadSpec& spec, std::int64_t ordinal, std::int64_t length) {
  const std::int64_t requests = request_count(spec);
  if (spec.completion.prompt == "text") {
    const Alphabet words(spec.seed, kWords.size(), requests);
    std::string text;
    for (std::int64_t i = 0; i < length; ++i) {
      if (i > 0) text += ' ';
      text += kWords[words.symbol(ordinal, i)];
    }
    return text;
  }
  std::int64_t first = spec.first_id, last = spec.last_id;
  if (last <= 0) {
    first = spec.completion.first_id;
    last = spec.completion.last_id;
  }
  last = std::max(first, last);
  const Alphabet ids(spec.seed, static_cast<std::uint64_t>(last - first) + 1, requests);
  json out = json::array();
  for (std::int64_t i = 0; i < length; ++i)
    out.push_back(first + static_cast<std::int64_t>(ids.symbol(ordinal, i)));
  return out;
}

void fill(json& value, const std::map<std::string, json>& values) {
  if (value.is_string()) {
    const auto it = values.find(value.get_ref<const std::string&>());
    if (it != values.end()) value = it->second;
  } else if (value.is_structured()) {
    for (json& each : value) fill(each, values);
  }
}

}  // namespace

std::int64_t request_count(const WorkloadSpec& spec) {
  std::int64_t count = 0;
  for (const auto& group : spec.groups)
    count =
        std::min(kMaxRequests, count + std::clamp<std::int64_t>(group.requests, 0, kMaxRequests));
  return count;
}

json request_body(const WorkloadSpec& spec, std::int64_t ordinal) {
  std::int64_t before = 0;
  for (const auto& group : spec.groups) {
    if (ordinal < 1 || ordinal > before + group.requests) {
      before += std::max<std::int64_t>(group.requests, 0);
      continue;
    }
    json body = spec.completion.body;
    const auto patch = spec.completion.classes.find(group.request_class);
    if (patch != spec.completion.classes.end()) body.merge_patch(patch->second);
    fill(body, {{"{prompt}",
                 prompt(spec, ordinal, std::clamp<std::int64_t>(group.prompt_tokens, 1, 1 << 20))},
                {"{model}", spec.model},
                {"{output_tokens}", group.output_tokens},
                {"{seed}", static_cast<std::int64_t>(draw(spec.seed, ordinal, -1) >> 33)},
                {"{adapter}", spec.adapter},
                {"{grammar}", spec.grammar}});
    return body;
  }
  throw std::out_of_range(fmt::format("there is no request {}", ordinal));
}

}  // namespace warmgate::target
