// Where wheels come from: a file, a URL, a commit.
#include <fmt/format.h>

#include <stdexcept>

#include "harness/run/artefact/build_step.h"
#include "harness/run/artefact/files.h"
#include "harness/run/artefact/wheel_file.h"
#include "harness/run/artefact/wheel_steps.h"
#include "harness/scenario/artefact_reader.h"

namespace warmgate::run {

namespace fs = std::filesystem;
using nlohmann::json;
using scenario::WheelSource;

namespace {

constexpr std::uintmax_t kMostDownload = std::uintmax_t{8} << 30;

std::string damage_of_download(const fs::path& folder, const json& facts) {
  const fs::path file = folder / facts.value("file", "");
  return sha256_of(file) == facts.value("sha256", "none") ? "" : "the file was changed";
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
  recipe.damage = damage_of_download;
  return context.store.get(recipe);
}

// From a package index that holds one commit's wheels: which of them fits is pip's to know.
std::shared_ptr<const Entry> download_from_index(const MakeContext& context,
                                                 const Interpreter& python,
                                                 const std::string& index,
                                                 const std::string& sha256) {
  const std::string package = context.facts.package;
  if (package.empty()) {
    throw std::runtime_error(fmt::format(
        "{} is an index, and which package of it is meant is not known: name the wheel's file in "
        "wheel.from",
        scenario::bare_url(index)));
  }
  Recipe recipe;
  recipe.kind = "download";
  recipe.made_from = {{"format", 1},
                      {"index", scenario::bare_url(index)},
                      {"package", package},
                      {"python", python.version},
                      {"sha256", sha256}};
  recipe.what = package + " of " + scenario::bare_url(index);
  recipe.build = [&](const fs::path& folder, const fs::path& log) {
    BuildStep step;
    step.argv = {python.program,
                 "-m",
                 "pip",
                 "download",
                 "--no-deps",
                 "--pre",
                 "--only-binary",
                 ":all:",
                 "--disable-pip-version-check",
                 "--no-input",
                 "--progress-bar",
                 "off",
                 "--index-url",
                 index,
                 "--dest",
                 folder.string(),
                 package};
    step.shown_as = without_credentials(step.argv);
    step.log = log;
    step.without = foreign_variables();
    step.deadline_s = kInstallDeadline_s;
    run_step(step, context.store.cancel());
    for (const auto& entry : fs::directory_iterator(folder)) {
      const std::string name = entry.path().filename().string();
      (void)read_wheel_name(name);
      const std::string got = sha256_of(entry.path());
      if (!sha256.empty() && got != sha256)
        throw BuildError(fmt::format("{} has sha256 {}, not {}", name, got, sha256));
      return json{{"file", name}, {"sha256", got}};
    }
    throw BuildError(fmt::format("{} gave no file", scenario::bare_url(index)));
  };
  recipe.damage = damage_of_download;
  return context.store.get(recipe);
}

std::string with_commit(std::string text, const std::string& what, const std::string& by) {
  for (std::size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

}  // namespace

WheelFile fetch_wheel(const MakeContext& context, const WheelSource& source) {
  WheelFile out;
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
      url = with_commit(from, "{commit}", source.commit);
    }
    const bool index = !source.commit.empty() && !scenario::bare_url(url).ends_with(".whl");
    out.entry =
        index ? download_from_index(context, interpreter_of(context, source), url, source.sha256)
              : download(context, url, source.sha256, wheel_name_of_url(url));
    out.file = out.entry->folder / out.entry->facts.value("file", "");
    check_wheel_file(out.file);
    out.sha256 = out.entry->facts.value("sha256", "");
  }
  out.name = out.file.filename().string();
  return out;
}

}  // namespace warmgate::run
