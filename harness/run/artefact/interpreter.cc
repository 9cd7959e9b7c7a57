// The Python that an environment is made with, asked without running anything of the environment.
#include <fmt/format.h>

#include <cstdlib>

#include "harness/run/artefact/build_step.h"
#include "harness/run/artefact/wheel_steps.h"
#include "harness/run/reproduce.h"
#include "harness/scenario/artefact_reader.h"
#include "harness/target/launch.h"

namespace warmgate::run {

namespace fs = std::filesystem;

namespace {

constexpr double kPythonDeadline_s = 60;

BuildStep python_question(std::vector<std::string> argv) {
  BuildStep step;
  step.argv = std::move(argv);
  step.without = foreign_variables();
  step.deadline_s = kPythonDeadline_s;
  return step;
}

Interpreter ask_interpreter(const std::string& name, const target::CancelToken& cancel) {
  const char* path = std::getenv("PATH");
  const std::string found = target::find_program(name, path != nullptr ? path : "");
  if (found.find('/') == std::string::npos)
    throw BuildError(
        fmt::format("there is no {} in PATH; wheels need Python (package python3)", name));
  const std::string answer =
      output_of(python_question({found, "-I", "-c",
                                 "import os, sys\nprint(os.path.realpath(sys.executable))\n"
                                 "print(' '.join(sys.version.split()))"}),
                cancel);
  const std::size_t end = answer.find('\n');
  Interpreter out{answer.substr(0, end), ""};
  if (end != std::string::npos)
    out.version = answer.substr(end + 1, answer.find('\n', end + 1) - end - 1);
  std::error_code failed;
  if (out.version.empty() || !fs::is_regular_file(out.program, failed))
    throw BuildError(fmt::format("{} does not answer like Python", found));
  return out;
}

}  // namespace

const std::vector<std::string>& foreign_variables() {
  static const std::vector<std::string> names = {"PYTHONPATH",
                                                 "PYTHONHOME",
                                                 "VIRTUAL_ENV",
                                                 "PIP_TARGET",
                                                 "PIP_PREFIX",
                                                 "PIP_USER",
                                                 "PIP_REQUIRE_VIRTUALENV",
                                                 "PIP_PYTHON",
                                                 "PIP_LOG"};
  return names;
}

bool succeeds(const std::vector<std::string>& argv, const target::CancelToken& cancel,
              std::string* said) {
  try {
    const std::string text = output_of(python_question(argv), cancel);
    if (said != nullptr) *said = text;
    return true;
  } catch (const BuildError&) {
    if (cancel.cancelled()) throw;
    return false;
  }
}

std::string without_credentials(std::vector<std::string> argv) {
  for (std::string& word : argv) {
    const std::size_t scheme = word.find("://");
    if (scheme == std::string::npos) continue;
    const std::size_t equal = word.rfind('=', scheme);
    const std::size_t begin = equal == std::string::npos ? 0 : equal + 1;
    word = word.substr(0, begin) + scenario::bare_url(word.substr(begin));
  }
  return shell_line(argv);
}

Interpreter interpreter_of(const MakeContext& context, const scenario::WheelSource& source) {
  const bool is_path = source.python.find('/') != std::string::npos;
  return ask_interpreter(source.python.empty() ? "python3"
                         : is_path             ? place(context, source.python).string()
                                               : source.python,
                         context.store.cancel());
}

}  // namespace warmgate::run
