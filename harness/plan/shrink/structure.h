// The layers of a model as its config.json tells them: what each one is, what role it has, and in
// which keys that stands.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace warmgate::plan::shrink {

/// What a layer mixes tokens with (an attention, a recurrence) and its feed-forward part; "" where
/// it has none. Two layers of one kind run the same code on the same shapes.
struct Kind {
  std::string mixer, ffn;
  bool operator==(const Kind&) const = default;
  auto operator<=>(const Kind&) const = default;
  std::string text() const { return mixer.empty() ? ffn : ffn.empty() ? mixer : mixer + "+" + ffn; }
};

/// A tapped layer also hands its output to a drafter: other code, other buffers.
enum class Role { kTarget, kTapped, kDraft };
std::string_view to_string(Role role);

using Pair = std::pair<Kind, Role>;

struct Experts {
  std::string key, top_k_key;  // "" = no experts
  std::int64_t count = 0, top_k = 0;
  std::int64_t groups = 1, top_k_groups = 1;  // group-limited routing: n_group, topk_group
};

struct Structure {
  std::string model_type;
  std::vector<Kind> target;        // by layer id
  std::vector<Kind> draft;         // ids follow those of the target
  std::string taps_key;            // "" = none
  std::vector<std::int64_t> taps;  // layer ids, ascending
  /// Keys that make a layer's kind a function of its id (a period): layers may then be left out
  /// only at the end. Without them any may be left out.
  std::vector<std::string> periods;
  std::vector<std::string> lists;       // one entry a layer, perhaps more for the draft layers
  std::string pattern;                  // one letter a layer; "" = none
  std::vector<std::string> boundaries;  // how many of the first layers are something
  std::vector<std::string> id_lists;    // the ids of layers that are something
  Experts experts;

  std::int64_t layers() const { return static_cast<std::int64_t>(target.size()); }
  bool tapped(std::int64_t id) const;
  Pair pair_of(std::int64_t id) const;  // 0 .. layers() + draft - 1
  std::set<Pair> pairs() const;
};

}  // namespace warmgate::plan::shrink
