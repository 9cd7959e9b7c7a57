// The rows of a gate: one JSON line at each transition of a run, written at once, so that a
// warmgate that is killed leaves a complete report of what was seen.
#pragma once

#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "harness/run/run_dir.h"

namespace warmgate::run {

inline constexpr std::string_view kRowsSchema = "rows/1.0";

/// Which run a row speaks of.
struct RowKey {
  std::string scenario, scenario_path, variant;
  int repeat = 0;
};

/// Fields of every row: schema, state (gate planned started phase ended judged done), at (UTC),
/// t (ns, monotonic); of rows about a run also scenario, path, variant, repeat.
/// Thread-safe; one write(2) a row. Without a path it writes nothing.
class RowWriter {
 public:
  RowWriter() = default;
  /// Replaces the file; makes its folder. Throws std::system_error naming the path. `secrets` are
  /// masked, and what shows by its shape.
  explicit RowWriter(const std::filesystem::path& path, std::vector<std::string> secrets = {});
  bool is_open() const { return fd_.valid(); }
  /// Closes the file. What went wrong with writing it, with the path and how many rows are missing;
  /// "" if nothing did. A disk that is full ends no gate, but nobody must take the file for whole.
  std::string finish();
  void gate(std::string_view state, nlohmann::ordered_json fields = {});
  void run(std::string_view state, const RowKey& key, nlohmann::ordered_json fields = {});

 private:
  void write(nlohmann::ordered_json row);
  std::filesystem::path path_;
  std::vector<std::string> secrets_;
  UniqueFd fd_;
  std::mutex mutex_;
  std::size_t rows_ = 0, lost_ = 0;
  int error_ = 0;      // of the first row that was lost
  bool torn_ = false;  // the file ends in the middle of a row
};

/// Now as YYYY-MM-DDTHH:MM:SSZ.
std::string utc_now();

}  // namespace warmgate::run
