// How each server is started on the small model. Data for a person and for the scenario that is
// written beside it; nothing here is run.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "harness/plan/shrink/json_file.h"
#include "harness/plan/shrink/structure.h"
#include "harness/plan/shrink/weights.h"

namespace warmgate::plan::shrink {

struct StartLine {
  std::string preset;                   // of fixtures/servers
  std::vector<std::string> command;     // empty = it cannot be started without weights
  std::vector<std::string> weightless;  // what makes it load no weights
  std::vector<std::string> args;        // of this model
  std::map<std::string, std::string> env;
  std::string note;                          // why not, or what to know
  std::map<std::string, std::string> files;  // that the line needs in the folder
  std::vector<std::string> argv() const;     // all of it
};

struct StartWish {
  std::string folder;
  Parallel parallel;
  bool tokenizer = false;  // a stub is in the folder
  std::int64_t block = 0;  // tokens a DSpark block, 0 = none
};

std::vector<StartLine> start_lines(const Structure& structure, const StartWish& wish);

/// As it is typed into a shell.
std::string shell_text(const StartLine& line);

}  // namespace warmgate::plan::shrink
