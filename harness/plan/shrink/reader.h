// Typed access to a config's keys. What is wrong becomes a complaint that names the key, and a
// harmless value, so that the rest is still read. Remembers which keys were asked for: the others
// are what this program does not know.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/plan/shrink/json_file.h"

namespace warmgate::plan::shrink {

/// No layer of a published model is wider, and products of three of these stay exact enough.
inline constexpr std::int64_t kMostWidth = 1 << 22;
inline constexpr std::int64_t kMostLayers = 4096, kMostExperts = 1 << 16;
inline constexpr std::int64_t kMostVocabulary = 1 << 26;

class Reader {
 public:
  Reader(const Json& config, Complaints& complaints) : config_(config), complaints_(complaints) {}

  /// There, and not null (Python writes null for what is switched off).
  bool has(const std::string& key) const {
    const auto it = config_.find(key);
    return it != config_.end() && !it->is_null();
  }
  /// A whole number from least to most that has to be there.
  std::int64_t whole(const std::string& key, std::int64_t least = 1,
                     std::int64_t most = kMostWidth);
  /// Nothing if the key is missing or null.
  std::optional<std::int64_t> maybe(const std::string& key, std::int64_t least = 1,
                                    std::int64_t most = kMostWidth);
  bool flag(const std::string& key, bool otherwise);
  std::string word(const std::string& key, const std::string& otherwise);
  std::vector<std::int64_t> numbers(const std::string& key, std::int64_t least, std::int64_t most);
  std::vector<std::string> words(const std::string& key);
  /// Known, and without meaning for the layers.
  void know(const std::string& key) { known_.insert(key); }
  bool knows(const std::string& key) const { return known_.count(key) > 0; }
  void complain(const std::string& key, std::string message) {
    complaints_.add(key, std::move(message));
  }
  const Json& config() const { return config_; }

 private:
  const Json* find(const std::string& key);
  const Json& config_;
  Complaints& complaints_;
  std::set<std::string> known_;
};

/// Text of a value for a message, at most 60 bytes.
std::string shown_value(const Json& value);

}  // namespace warmgate::plan::shrink
