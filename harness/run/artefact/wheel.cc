// wheel: fetched if it has to be, checked, and installed into an environment of its own.
#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <stdexcept>

#include "harness/run/artefact/build_step.h"
#include "harness/run/artefact/files.h"
#include "harness/run/artefact/makers.h"
#include "harness/run/artefact/wheel_file.h"
#include "harness/run/reproduce.h"
#include "harness/scenario/artefact_reader.h"
#include "harness/target/launch.h"
#include "harness/trace/sha256.h"

namespace warmgate::run {

namespace fs = std::filesystem;
using nlohmann::json;
using scenario::WheelSource;

namespace {

constexpr std::uintmax_t kMostDownload = std::uintmax_t{8} << 30;
constexpr double kInstallDeadline_s = 3600, kQuestionDeadline_s = 60;

// Variables that would send pip or Python elsewhere than where we mean.
const std::vector<std::string> kForeign = {"PYTHONPATH",
                                           "PYTHONHOME",
                                           "VIRTUAL_ENV",
                                           "PIP_TARGET",
                                           "PIP_PREFIX",
                                           "PIP_USER",
                                           "PIP_REQUIRE_VIRTUALENV",
                                           "PIP_PYTHON",
                                           "PIP_LOG"};

struct Interpreter {
  std::string program;  // the file that runs, behind links and shims
  std::string version;  // sys.version: build and compiler too
};

BuildStep question(std::vector<std::string> argv) {
  BuildStep step;
  step.argv = std::move(argv);
  step.without = kForeign;
  step.deadline_s = kQuestionDeadline_s;
  return step;
}

Interpreter ask_interpreter(const std::string& name, const target::CancelToken& cancel) {
  const char* path = std::getenv("PATH");
  const std::string found = target::find_program(name, path != nullptr ? path : "");
  if (found.find('/') == std::string::npos)
    throw BuildError(
        fmt::format("there is no {} in PATH; wheels need Python (package python3)", name));
  const std::string answer =
      output_of(question({found, "-I", "-c",
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

bool succeeds(const std::vector<std::string>& argv, const target::CancelToken& cancel,
              std::string* said = nullptr) {
  try {
    const std::string text = output_of(question(argv), cancel);
    if (said != nullptr) *said = text;
    return true;
  } catch (const BuildError&) {
    if (cancel.cancelled()) throw;
    return false;
  }
}

// pip can install into another environment from 22.3 on (`--python`): an environment without a pip
// of its own takes a tenth of the time.
bool pip_reaches_out(const std::string& python, const target::CancelToken& cancel) {
  std::string said;
  if (!succeeds({python, "-m", "pip", "--version"}, cancel, &said)) return false;
  int major = 0, minor = 0;  // "pip 23.0.1 from …"
  const char *at = said.data() + std::min<std::size_t>(4, said.size()),
             *end = said.data() + said.size();
  const auto first = std::from_chars(at, end, major);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '.') return false;
  if (std::from_chars(first.ptr + 1, end, minor).ec != std::errc()) return false;
  return major > 22 || (major == 22 && minor >= 3);
}

// An index may be named with a password in its URL.
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

void make_environment(const Interpreter& python, const fs::path& folder, const fs::path& log,
                      const std::vector<std::string>& install, const Store& store) {
  BuildStep step;
  step.log = log;
  step.cwd = folder.parent_path();
  step.without = kForeign;
  step.deadline_s = kInstallDeadline_s;
  std::vector<std::string> pip;
  const std::string own = (folder / "bin/python").string();
  if (pip_reaches_out(python.program, store.cancel())) {
    step.argv = {python.program, "-m", "venv", "--without-pip", folder.string()};
    pip = {python.program, "-m", "pip", "--python", own};
  } else {
    if (!succeeds({python.program, "-c", "import ensurepip, venv"}, store.cancel())) {
      throw BuildError(
          fmt::format("{} can make no virtual environments with pip in them: install "
                      "the package python3-venv (or python3-pip, 22.3 or newer)",
                      python.program));
    }
    step.argv = {python.program, "-m", "venv", folder.string()};
    pip = {own, "-m", "pip"};
  }
  run_step(step, store.cancel());
  step.argv = pip;
  for (const char* word : {"install", "--disable-pip-version-check", "--no-input",
                           "--no-warn-script-location", "--progress-bar", "off"}) {
    step.argv.emplace_back(word);
  }
  step.argv.insert(step.argv.end(), install.begin(), install.end());
  step.shown_as = without_credentials(step.argv);
  run_step(step, store.cancel());
}

json facts_of(const std::vector<Installed>& installed) {
  return {{"packages", packages_hash(packages_of(installed))}, {"count", installed.size()}};
}

std::string damage_of(const fs::path& folder, const json& facts) {
  try {
    const auto installed = read_installed(read_venv(folder).site_packages);
    if (facts_of(installed) == facts) return "";
    for (const Installed& each : installed) {
      if (!each.package.changed.empty())
        return fmt::format("{} was changed in it", each.package.changed.front());
    }
    return "its packages are not those that were installed";
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

// One download into its own entry, so that the same file is never fetched twice.
std::shared_ptr<const Entry> download(const MakeContext& context, const std::string& url,
                                      const std::string& sha256, const std::string& name) {
  Recipe recipe;
  recipe.kind = "download";
  // Not the URL as it is: it may hold a password, and a signed one differs each time.
  recipe.made_from = {{"format", 1}, {"name", name}};
  if (sha256.empty()) {
    recipe.made_from["url"] = scenario::bare_url(url);
  } else {
    recipe.made_from["sha256"] = sha256;
  }
  recipe.what = scenario::bare_url(url);
  recipe.build = [&, url, sha256, name](const fs::path& folder, const fs::path& log) {
    const fs::path file = folder / name;
    BuildStep step;
    // Redirects may not lead to files or mail servers. The URL is never read as an option.
    step.argv = {"curl",
                 "--fail",
                 "--location",
                 "--silent",
                 "--show-error",
                 "--retry",
                 "2",
                 "--connect-timeout",
                 "30",
                 "--max-redirs",
                 "10",
                 "--proto",
                 "=https,http,file",
                 "--proto-redir",
                 "=https,http",
                 "--max-filesize",
                 std::to_string(kMostDownload),
                 "--globoff",
                 "--output",
                 file.string(),
                 "--url",
                 url};
    step.shown_as = "curl " + scenario::bare_url(url);
    step.log = log;
    step.deadline_s = kInstallDeadline_s;
    // --max-filesize knows only what a server announces.
    step.watch = [&]() -> std::string {
      std::error_code failed;
      const auto size = fs::file_size(file, failed);
      return !failed && size > kMostDownload ? "more than 8 GiB" : "";
    };
    run_step(step, context.store.cancel());
    const std::string got = sha256_of(file);
    if (!sha256.empty() && got != sha256) {
      throw BuildError(fmt::format("{} gave a file with sha256 {}, not {}", scenario::bare_url(url),
                                   got, sha256));
    }
    return json{{"file", name}, {"sha256", got}};
  };
  recipe.damage = [](const fs::path& folder, const json& facts) -> std::string {
    const fs::path file = folder / facts.value("file", "");
    return sha256_of(file) == facts.value("sha256", "none") ? "" : "the file was changed";
  };
  return context.store.get(recipe);
}

struct Wheel {
  fs::path file;
  std::string sha256, name;
  std::shared_ptr<const Entry> entry;  // of a download
};

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (std::size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

Wheel fetch(const MakeContext& context, const WheelSource& source) {
  Wheel out;
  if (!source.path.empty()) {
    out.file = place(context, source.path);
    std::error_code failed;
    if (!fs::exists(out.file, failed))
      throw std::runtime_error(fmt::format("{}: no such file", out.file.string()));
    (void)read_wheel_name(out.file.filename().string());
    check_wheel_file(out.file);
    out.sha256 = sha256_of(out.file);
    if (!source.sha256.empty() && source.sha256 != out.sha256) {
      throw std::runtime_error(
          fmt::format("{} has sha256 {}, not {}", out.file.string(), out.sha256, source.sha256));
    }
  } else {
    std::string url = source.url;
    if (!source.commit.empty()) {
      const std::string from = source.from.empty() ? context.facts.wheel_url : source.from;
      if (from.empty()) {
        throw std::runtime_error(
            "where wheels of a commit are is not known: give wheel.from, a URL with {commit} in "
            "it, or a server target whose preset has one");
      }
      url = replaced(from, "{commit}", source.commit);
    }
    const std::string name = wheel_name_of_url(url);
    out.entry = download(context, url, source.sha256, name);
    out.file = out.entry->folder / name;
    check_wheel_file(out.file);
    out.sha256 = out.entry->facts.value("sha256", "");
  }
  out.name = out.file.filename().string();
  return out;
}

}  // namespace

Ready make_wheel(const MakeContext& context, const WheelSource& source) {
  const Wheel wheel = fetch(context, source);
  const Interpreter python = ask_interpreter(source.python.empty() ? "python3"
                                             : source.python.find('/') == std::string::npos
                                                 ? source.python
                                                 : place(context, source.python).string(),
                                             context.store.cancel());
  Recipe recipe;
  recipe.kind = "venv";
  recipe.made_from = {{"format", 1},
                      {"wheel", wheel.sha256},
                      {"name", wheel.name},
                      {"python", python.program},
                      {"version", python.version},
                      {"pip", trace::sha256_hex(json(source.pip).dump())}};
  recipe.what = "wheel " + wheel.name;
  std::vector<std::string> install = source.pip;
  // Relative folders of --find-links and the like are the scenario's, as all its paths are.
  for (std::size_t i = 1; i < install.size(); ++i) {
    const std::string& option = install[i - 1];
    const bool takes_path = option == "--find-links" || option == "-f" || option == "-r" ||
                            option == "--requirement" || option == "-c" || option == "--constraint";
    if (takes_path && install[i].find("://") == std::string::npos)
      install[i] = place(context, install[i]).string();
  }
  install.push_back(wheel.file.string());
  recipe.build = [&](const fs::path& folder, const fs::path& log) {
    make_environment(python, folder, log, install, context.store);
    return facts_of(read_installed(read_venv(folder).site_packages));
  };
  recipe.damage = damage_of;
  const auto entry = context.store.get(recipe);
  const Venv venv = read_venv(entry->folder);
  const auto installed = read_installed(venv.site_packages);
  Ready out =
      ready_from_venv(venv, installed, context.argv, read_wheel_name(wheel.name).distribution);
  out.entries.push_back(entry);
  if (wheel.entry) out.entries.push_back(wheel.entry);
  if (!entry->note.empty()) out.identity.notes.push_back(entry->note);
  // The wheel's own hash does not tell what else was installed with it.
  if (!source.commit.empty()) out.identity.commit = source.commit;
  if (!source.commit.empty() && source.sha256.empty())
    out.identity.notes.push_back("sha256 " + wheel.sha256 + ", as downloaded");
  return out;
}

}  // namespace warmgate::run
