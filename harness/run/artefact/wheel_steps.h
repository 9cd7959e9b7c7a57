// The parts of a wheel's way: the interpreter that it is for, and its file.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "harness/run/artefact/makers.h"

namespace warmgate::run {

struct Interpreter {
  std::string program;  // the file that runs, behind links and shims
  std::string version;  // sys.version: build and compiler too
};

/// The one that the wheel's environment is made with. Throws BuildError where it is not there, or
/// is no Python.
Interpreter interpreter_of(const MakeContext& context, const scenario::WheelSource& source);

/// True if the command ends with 0 within a minute; `said` gets its output.
bool succeeds(const std::vector<std::string>& argv, const target::CancelToken& cancel,
              std::string* said = nullptr);

/// Variables that would send pip or Python elsewhere than where we mean.
const std::vector<std::string>& foreign_variables();

/// A command as it may be shown: URLs without user, password and query.
std::string without_credentials(std::vector<std::string> argv);

/// The file of a wheel, checked and hashed.
struct WheelFile {
  std::filesystem::path file;
  std::string sha256, name;
  std::shared_ptr<const Entry> entry;  // of a download
};

/// Throws std::runtime_error for what is no wheel, or not the one that was meant.
WheelFile fetch_wheel(const MakeContext& context, const scenario::WheelSource& source);

inline constexpr double kInstallDeadline_s = 3600;

}  // namespace warmgate::run
