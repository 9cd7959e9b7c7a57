// What the commands' options have in common, and the commands that judge nothing. Only few files
// know CLI11: it costs seconds each.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "harness/cli/command_line.h"

namespace warmgate::cli::parts {

// What CLI11 fills; turned into a CommandLine afterwards.
struct Raw {
  std::string scenario;
  std::vector<std::string> soft, variants, tags, with;
  std::string timeout, jit = "auto", colour = "auto", memory, tokenizer = "none";
  bool no_expect = false, quiet = false, verbose = false;
};

/// Whole numbers from least to most, decimal: CLI11 itself also takes 0x10 and 010.
CLI::Validator whole(long least, long most);
/// Without words of its own in the help: the type's name says it already.
CLI::Validator unnamed(CLI::Validator validator);
void add_colour(CLI::App* sub, Raw& raw);
void add_detail(CLI::App* sub, Raw& raw);
void add_scenario_choices(CLI::App* sub, CommandLine& line);
void add_variants(CLI::App* sub, Raw& raw);
void add_kernels(CLI::App* sub, CommandLine& line, Raw& raw);
void add_running(CLI::App* sub, CommandLine& line, Raw& raw);
void add_soft(CLI::App* sub, Raw& raw);
void add_judging(CLI::App* sub, CommandLine& line, Raw& raw);
void add_json(CLI::App* sub, CommandLine& line, const char* what);
CLI::Option* add_one_scenario(CLI::App* sub, Raw& raw);

inline constexpr const char* kJsonReport =
    "write the report as JSON (schema report/1.1); - = stdout";
inline constexpr const char* kJsonResult = "write the result as JSON; - = stdout";

/// Every command but run, ab, gate and step, and what all of them have in common; called last.
void add_tools(CLI::App& app, CommandLine& line, Raw& raw);

}  // namespace warmgate::cli::parts
