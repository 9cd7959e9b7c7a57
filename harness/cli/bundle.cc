#include "harness/run/bundle.h"

#include <fmt/format.h>

#include <filesystem>

#include "harness/cli/commands.h"
#include "harness/cli/output_file.h"
#include "harness/cli/result_output.h"
#include "reports/printer.h"

namespace warmgate::cli {

namespace {

namespace fs = std::filesystem;

// A bundle replaces an ordinary file, nothing else, and nothing of the run that it is made of.
void refuse_output(const CommandLine& line) {
  if (line.output.empty()) return;
  std::error_code failed;
  const fs::path output = line.output;
  std::string why;
  if (fs::exists(fs::symlink_status(output, failed)) && !fs::is_regular_file(output, failed))
    why = "is no ordinary file; name one that a bundle may replace";
  const fs::path run = fs::weakly_canonical(line.paths.front(), failed);
  const fs::path place = fs::weakly_canonical(fs::absolute(output, failed), failed);
  const fs::path inner = place.lexically_relative(run);
  if (same_file(line.paths.front(), output) ||
      (fs::is_directory(run, failed) && !inner.empty() && *inner.begin() != ".."))
    why = "is of the run that is to be bundled; name a file elsewhere";
  if (!why.empty())
    throw scenario::ScenarioError({{"--output", 0, 0, "", output.string() + " " + why}});
}

}  // namespace

int bundle_command(const CommandLine& line, Console& console) {
  refuse_output(line);
  run::BundleWish wish;
  wish.caches = line.with.count("caches") > 0;
  wish.cores = line.with.count("cores") > 0;
  wish.prompts = line.with.count("prompts") > 0;
  const run::Bundled made =
      run::make_bundle(line.paths.front(), line.output, wish, console.secrets());
  reports::Printer out(line.json == "-" ? console.err_style() : console.out_style(),
                       console.secrets());
  out.row(0,
          out.cell(made.file.string(), reports::Tone::kStrong) +
              out.cell(fmt::format("  {} files, {} KiB", made.files, (made.bytes + 1023) / 1024)));
  for (const std::string& left : made.left_out) out.paragraph(2, "left out: " + left);
  out.command(2, "repeat:", made.command);
  nlohmann::ordered_json json;
  json["schema"] = "bundled/1.0";
  json["file"] = made.file.string();
  json["bytes"] = made.bytes;
  json["files"] = made.files;
  json["left_out"] = made.left_out;
  json["command"] = made.command;
  return deliver_result(json, out.take(), 0, line, console);
}

}  // namespace warmgate::cli
