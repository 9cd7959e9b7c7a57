// The language as data: one table of typed fields drives the reader, its errors and the schema.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace warmgate::scenario {

enum class Type {
  kInteger,  // min..max, or one of choices
  kReal,     // min..max
  kBool,
  kText,         // any scalar, as written
  kName,         // letters, digits, . _ - ; at most 80
  kChoice,       // one of choices
  kContract,     // name of a contract or comparison
  kBytes,        // integer, or number with a unit; min..max
  kSeconds,      // seconds, or number with a unit; min..max
  kPercent,      // "10 %"
  kFigureValue,  // number in the unit of the figure that names it
  kBound,        // see Bound; in the unit of the figure that names it
  kReference,    // issue number or text
  kDate,         // YYYY-MM-DD
  kArch,         // sm_90a
  kPort,         // auto, none, or 1..65535
  kAny,          // any YAML, kept as JSON: presets' request bodies
  kList,         // of fields[0]
  kOneOrMore,    // fields[0], or a list of them
  kObject,       // keys are fields
  kNamed,        // keys by `keys`, every value is fields[0]
  kExpect,       // fields[0], or a map from variant names to it
  kMatrix,       // key path of an overlay → list of values for it
  kRefused,      // known, but not in this version; meaning says why
};

/// Which keys a kNamed map takes.
enum class Keys {
  kVariant,
  kRank,
  kFigure,
  kFigureOrContract,
  kPhaseOrDefault,
  kEnvironment,
  kDrafterMethod,
  kMember,
  kStore,
  kAnyName
};

struct Field {
  std::string_view name;  // "" for the element of a list or map
  Type type = Type::kText;
  std::string_view meaning;
  double min = 0, max = 0;
  std::vector<std::string_view> choices = {};
  std::vector<Field> fields = {};
  Keys keys = Keys::kVariant;
  /// Groups of keys of a kObject that exclude one another; an overlay that uses one group drops
  /// the others of what it overlays.
  std::vector<std::vector<std::string_view>> either = {};
  bool required = false;
  /// kObject: the key that a single value stands for, "" if it takes a map only.
  std::string_view short_key = {};
  std::string_view fallback = {};  // YAML text of the value where nobody gives one
  std::size_t min_items = 0, max_items = 4096;

  const Field* find(std::string_view key) const;
};

/// A scenario file.
const Field& scenario_field();
/// What a variant, matrix or --set may lay over the base of a scenario.
const Field& overlay_field();
/// What a preset (fixtures/models) and a behaviour (fixtures/behaviours, or a file of the
/// scenario's tree) may hold.
const Field& preset_field();
const Field& behaviour_field();

/// Names of the keys of an object.
std::vector<std::string> key_names(const Field& object);

}  // namespace warmgate::scenario
