// wheel: installed into an environment of its own.
#include <fmt/format.h>

#include <charconv>
#include <stdexcept>

#include "harness/run/artefact/build_step.h"
#include "harness/run/artefact/wheel_file.h"
#include "harness/run/artefact/wheel_steps.h"
#include "harness/trace/sha256.h"

namespace warmgate::run {

namespace fs = std::filesystem;
using nlohmann::json;
using scenario::WheelSource;

namespace {

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

void make_environment(const Interpreter& python, const fs::path& folder, const fs::path& log,
                      const std::vector<std::string>& install, const Store& store) {
  BuildStep step;
  step.log = log;
  step.cwd = folder.parent_path();
  step.without = foreign_variables();
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

json venv_facts(const std::vector<Installed>& installed) {
  return {{"packages", packages_hash(packages_of(installed))}, {"count", installed.size()}};
}

std::string damage_of_venv(const fs::path& folder, const json& facts) {
  try {
    const auto installed = read_installed(read_venv(folder).site_packages);
    if (venv_facts(installed) == facts) return "";
    for (const Installed& each : installed) {
      if (!each.package.changed.empty())
        return fmt::format("{} was changed in it", each.package.changed.front());
    }
    return "its packages are not those that were installed";
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

}  // namespace

Ready make_wheel(const MakeContext& context, const WheelSource& source) {
  const WheelFile wheel = fetch_wheel(context, source);
  const Interpreter python = interpreter_of(context, source);
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
    return venv_facts(read_installed(read_venv(folder).site_packages));
  };
  recipe.damage = damage_of_venv;
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
