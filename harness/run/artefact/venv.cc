// venv: an environment that is there; and what every environment gives to the processes in it.
#include <fmt/format.h>

#include <cstdlib>
#include <stdexcept>

#include "harness/run/artefact/files.h"
#include "harness/run/artefact/makers.h"
#include "harness/target/launch.h"
#include "harness/trace/sha256.h"

namespace warmgate::run {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMostHashed = std::size_t{256} << 20;

std::string path_variable() {
  const char* value = std::getenv("PATH");
  return value != nullptr ? value : "";
}

}  // namespace

fs::path place(const MakeContext& context, const std::string& written) {
  if (written == "~" || written.rfind("~/", 0) == 0) {
    const char* home = std::getenv("HOME");
    if (home == nullptr || *home == '\0')
      throw std::runtime_error(fmt::format("{}: HOME is not set", written));
    return (fs::path(home) / written.substr(std::min<std::size_t>(2, written.size())))
        .lexically_normal();
  }
  return (context.home / written).lexically_normal();
}

ProgramFiles program_files(const std::vector<std::string>& argv, const std::string& path,
                           const fs::path& cwd) {
  ProgramFiles out;
  if (argv.empty()) return out;
  std::string all;
  std::error_code failed;
  for (std::size_t i = 0; i < argv.size(); ++i) {
    fs::path file = argv[i];
    if (i == 0) file = target::find_program(argv[0], path);
    if (i > 0 && (argv[i].empty() || argv[i][0] == '-')) continue;
    if (file.is_relative()) file = cwd / file;
    if (!fs::is_regular_file(file, failed)) continue;
    if (i == 0) out.program = fs::canonical(file, failed).string();
    // A model's weights are data, not the program.
    if (i > 0 && fs::file_size(file, failed) > kMostHashed) continue;
    all += fmt::format("{} {}\n", i, sha256_of(file));
  }
  if (!out.program.empty()) out.hash = trace::sha256_hex(all);
  return out;
}

Ready ready_from_venv(const Venv& venv, const std::vector<Installed>& installed,
                      const std::vector<std::string>& argv, const std::string& package) {
  Ready out;
  out.root = venv.root;
  out.bin = venv.root / "bin";
  // Nothing of the environment that warmgate itself runs in.
  out.env = {{"VIRTUAL_ENV", venv.root.string()}, {"PYTHONPATH", ""}, {"PYTHONHOME", ""}};
  verdict::ArtefactIdentity& identity = out.identity;
  identity.path = venv.root.string();
  identity.python = venv.version;
  identity.packages = packages_of(installed);
  identity.hash = packages_hash(*identity.packages);
  const Installed* main = package.empty() ? nullptr : find_installed(installed, package);
  if (main == nullptr) main = owner_of(installed, argv);
  if (main != nullptr) {
    identity.version = main->package.name + " " + main->package.version;
    identity.commit = main->package.commit;
  }
  if (venv.sees_system)
    identity.notes.emplace_back(
        "sees the packages of its Python too (include-system-site-packages), which are not listed");
  std::size_t changed = 0, editable = 0;
  for (const verdict::Package& each : *identity.packages) {
    changed += each.changed.size();
    editable += each.editable ? 1 : 0;
  }
  if (changed > 0)
    identity.notes.push_back(
        fmt::format("{} file{} changed after the installation", changed, changed == 1 ? "" : "s"));
  if (editable > 0)
    identity.notes.push_back(
        fmt::format("{} editable package{}: what their folders hold is not looked at", editable,
                    editable == 1 ? "" : "s"));
  return out;
}

Ready make_venv(const MakeContext& context, const std::string& path) {
  const Venv venv = read_venv(place(context, path));
  return ready_from_venv(venv, read_installed(venv.site_packages), context.argv,
                         context.facts.package);
}

Ready make_command(const MakeContext& context) {
  const ProgramFiles files = program_files(context.argv, path_variable(), context.cwd);
  // A program of a virtual environment brings that with it, activated or not.
  std::error_code failed;
  const fs::path program =
      context.argv.empty() ? "" : target::find_program(context.argv[0], path_variable());
  const fs::path root = program.has_parent_path()
                            ? (context.cwd / program.parent_path().parent_path()).lexically_normal()
                            : fs::path();
  Ready out;
  if (!root.empty() && program.parent_path().filename() == "bin" && looks_like_venv(root)) {
    const Venv venv = read_venv(root);
    out = ready_from_venv(venv, read_installed(venv.site_packages), context.argv,
                          context.facts.package);
    out.identity.hash = trace::sha256_hex(files.hash + "\n" + out.identity.hash);
    out.env.clear();  // started as it always is
    out.bin.clear();
    out.root.clear();
  } else {
    out.identity.hash = files.hash;
    out.identity.packages_why = "the program is not in a virtual environment";
    if (files.hash.empty())
      out.identity.notes.emplace_back("the program was not found before the run");
  }
  out.identity.path = files.program;
  return out;
}

}  // namespace warmgate::run
