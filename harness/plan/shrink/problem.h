// What is wrong with a config, gathered so that a person sees all of it in one go.
#pragma once

#include <string>
#include <vector>

#include "harness/scenario/scenario.h"

namespace warmgate::plan::shrink {

/// Adds to a list that ends as one ScenarioError (exit code 2). `key` is the key path in the file.
class Complaints {
 public:
  explicit Complaints(std::string file) : file_(std::move(file)) {}
  void add(std::string key, std::string message) {
    // Equal ones come up where two rules read one key; a file wrong in every key needs no more.
    for (const scenario::Problem& p : problems_) {
      if (p.key_path == key && p.message == message) return;
    }
    if (problems_.size() < kMost)
      problems_.push_back({file_, 0, 0, std::move(key), std::move(message)});
  }
  void add_at(int line, int column, std::string message) {
    problems_.push_back({file_, line, column, "", std::move(message)});
  }
  /// True if something was said of that key.
  bool about(const std::string& key) const {
    for (const scenario::Problem& p : problems_) {
      if (p.key_path == key) return true;
    }
    return false;
  }
  bool empty() const { return problems_.empty(); }
  void throw_if_any() const {
    if (!problems_.empty()) throw scenario::ScenarioError(problems_);
  }

 private:
  static constexpr std::size_t kMost = 50;
  std::string file_;
  std::vector<scenario::Problem> problems_;
};

}  // namespace warmgate::plan::shrink
