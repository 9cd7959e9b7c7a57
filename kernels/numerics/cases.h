// All measurements: each compares ops with oracles on fresh inputs and adds lines to the table. The
// test program runs each as a test of its own name, numerics_table prints them all.
#pragma once

#include "kernels/numerics/inputs.h"
#include "kernels/numerics/table.h"

namespace warmgate::numerics {

struct Case {
  const char* name;
  void (*measure)(Random&, Table&);
  bool of_host = false;  // measures functions that run on the host whatever the device
};

const std::vector<Case>& cases();

// By file.
std::vector<Case> format_cases();
std::vector<Case> linear_cases();
std::vector<Case> position_cases();
std::vector<Case> cache_cases();
std::vector<Case> metadata_cases();
std::vector<Case> compressor_cases();
std::vector<Case> indexer_cases();
std::vector<Case> topk_cases();
std::vector<Case> attention_cases();
std::vector<Case> check_cases();  // the checks a reference should include
std::vector<Case> output_cases();
std::vector<Case> layer_cases();

}  // namespace warmgate::numerics
