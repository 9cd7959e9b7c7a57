// Compile keys of one run side by side: what warmup compiled, what the dispatcher can produce, what
// serving launched, what is invalid on the host or for an architecture.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "harness/trace/event.h"

namespace warmgate::plan {

inline constexpr const char* kKeysSchema = "keys/1.0";

/// kNone: nobody looked. For the host half kOk and kBroken are a run with checked integers.
enum class KeyState { kNone, kOk, kBroken };
std::string_view to_string(KeyState state);

struct KeyRow {
  std::string key;
  bool asked = false;     // warmup asked for it
  bool compiled = false;  // and came to compile it
  bool warmed = false;    // which went well
  bool reachable = false, launched = false;
  std::int64_t launches = 0;  // in serve
  KeyState host = KeyState::kNone;
  std::map<std::string, KeyState> archs;
  std::string why;  // what the host half or the first compiler that refused said
  bool invalid() const;
};

struct KernelKeys {
  std::string kernel;
  bool domain_known = false;  // the engine said what the dispatcher can produce
  std::vector<KeyRow> rows;   // in order of appearance: asked for, launched, then reachable only
  std::size_t count(bool KeyRow::*field) const;
  std::size_t asked() const { return count(&KeyRow::asked); }
  std::size_t warmed() const { return count(&KeyRow::warmed); }
  std::size_t reachable() const { return count(&KeyRow::reachable); }
  std::size_t launched() const { return count(&KeyRow::launched); }
  std::size_t invalid() const;         // among those asked for
  std::size_t never_compiled() const;  // asked for only: a failure before them skipped them
  std::size_t launched_not_warmed() const;
  std::size_t asked_not_reachable() const;
};

struct KeyTable {
  std::vector<std::string> archs;  // that anybody compiled for, or that the scenario lists
  std::vector<KernelKeys> kernels;
  std::vector<std::string> not_observed;
};

/// `archs`: those of the scenario, in its order; others that the trace names follow.
KeyTable key_table(const trace::Trace& trace, std::vector<std::string> archs);

nlohmann::ordered_json to_json(const KeyTable& table);

}  // namespace warmgate::plan
