#include "harness/run/bundle.h"

#include <fmt/format.h>

#include "harness/cli/commands.h"
#include "harness/cli/outputs.h"
#include "harness/cli/result_output.h"
#include "reports/printer.h"

namespace warmgate::cli {

int bundle_command(const CommandLine& line, Console& console) {
  check_outputs(line);
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
