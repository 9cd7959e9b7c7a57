// The one command that repeats a result, as a person can paste it into a shell.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/run/run.h"

namespace warmgate::run {

/// Words joined by spaces; a word is quoted only where a POSIX shell would read it otherwise.
std::string shell_line(const std::vector<std::string>& words);

/// `warmgate` if that is what PATH gives, else this program's path, relative where it is shorter.
std::string program_name();

/// `warmgate run FILE --variant NAME …` with every choice of `options` that changes the result.
/// `starts`: how many it takes, one after the other.
std::string reproduce_command(const std::filesystem::path& scenario, const std::string& variant,
                              const Options& options, int starts = 1);
/// `warmgate gate FILES…` for the whole, or with the verb that `options` name.
std::string gate_command(const std::vector<std::filesystem::path>& files, const Options& options);

}  // namespace warmgate::run
