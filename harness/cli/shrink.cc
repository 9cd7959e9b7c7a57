#include "harness/plan/shrink/shrink.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "harness/cli/commands.h"
#include "harness/cli/output_file.h"
#include "harness/cli/result_output.h"
#include "reports/printer.h"

namespace warmgate::cli {
namespace {

using plan::shrink::Result;
using reports::Tone;

std::string bytes_text(double bytes) {
  constexpr double kMiB = 1 << 20, kGiB = 1 << 30;
  return bytes < kGiB ? fmt::format("{:.1f} MiB", bytes / kMiB)
                      : fmt::format("{:.2f} GiB", bytes / kGiB);
}

void print_changes(reports::Printer& out, const Result& r) {
  std::size_t widest = 0;
  for (const auto& change : r.changes) widest = std::max(widest, change.key.size());
  for (const auto& change : r.changes)
    out.paragraph(2, change.from + " -> " + change.to, Tone::kPlain,
                  out.cell(change.key, Tone::kStrong, widest + 2), widest + 2);
  if (r.changes.empty()) out.row(2, out.cell("nothing: it is as small already"));
  out.row(2, out.cell("every other key stays as it is", Tone::kQuiet));
}

// The sum as one could do it with a pencil.
void print_weights(reports::Printer& out, const Result& r) {
  std::size_t widest = 0;
  for (const auto& w : r.weights) widest = std::max(widest, w.name.size());
  for (const auto& w : r.weights)
    out.row(2,
            out.cell(w.name, Tone::kPlain, widest + 2) +
                out.cell(fmt::format("{:>11}  {} x ({}) x {:.4g} B{}", bytes_text(w.bytes()),
                                     w.count, w.product.empty() ? "1" : w.product, w.bytes_each,
                                     w.shards > 1 ? fmt::format(" over {} ranks", w.shards) : "")));
  out.row(2,
          out.cell("sum", Tone::kStrong, widest + 2) +
              out.cell(fmt::format("{:>11}  {}the full model: {}", bytes_text(r.bytes),
                                   r.bytes == r.bytes_per_rank
                                       ? ""
                                       : fmt::format("{} a rank; ", bytes_text(r.bytes_per_rank)),
                                   bytes_text(r.full_bytes)),
                       Tone::kStrong));
  out.paragraph(
      2,
      fmt::format("{} of {} may be weights; the rest is for the context, activations, graphs "
                  "and a KV pool. Norms and biases are not counted.",
                  bytes_text(static_cast<double>(r.allowed_bytes)),
                  bytes_text(static_cast<double>(r.memory_bytes))),
      Tone::kQuiet);
}

void print_list(reports::Printer& out, const char* title, const std::vector<std::string>& lines) {
  if (lines.empty()) return;
  out.blank();
  out.row(0, out.cell(title, Tone::kStrong));
  for (const std::string& line : lines) out.paragraph(2, line, Tone::kPlain, out.cell("- "), 2);
}

std::string text_of(const Result& r, const CommandLine& line, const reports::Style& style) {
  reports::Printer out(style, {});
  std::string head =
      fmt::format("{}: {} layers of {}", r.before.model_type, r.after.layers(), r.before.layers());
  if (!r.after.draft.empty())
    head += fmt::format(" and {} draft layer{}", r.after.draft.size(),
                        r.after.draft.size() == 1 ? "" : "s");
  if (r.before.experts.count > 0)
    head += fmt::format(", {} experts of {}", r.after.experts.count, r.before.experts.count);
  head += fmt::format(", {} of {}", bytes_text(r.bytes), bytes_text(r.full_bytes));
  out.row(0, out.cell(head, Tone::kStrong));
  out.blank();
  out.row(0, out.cell("changed", Tone::kStrong));
  print_changes(out, r);
  out.blank();
  out.row(0, out.cell("weights", Tone::kStrong));
  print_weights(out, r);
  print_list(out, "notes", r.notes);
  if (!r.fits()) {
    out.blank();
    out.paragraph(
        0,
        fmt::format("does not fit: {} a rank, {} allowed; nothing was written. Every kind of "
                    "layer is there once, and widths are not touched: more ranks (--tp) or "
                    "more memory (--memory) are what is left.",
                    bytes_text(r.bytes_per_rank), bytes_text(static_cast<double>(r.allowed_bytes))),
        Tone::kBad);
    return out.take();
  }
  print_list(out, "a start of it covers", r.covers);
  print_list(out, "it can no longer show", r.cannot_show);
  print_list(out, "what a gate may ask of it", r.gates);
  out.blank();
  out.row(0,
          out.cell("start lines (as the servers document them; none was run here)", Tone::kStrong));
  for (const auto& start : r.lines) {
    if (start.command.empty()) {
      out.paragraph(2, start.note, Tone::kQuiet, out.cell(start.preset, Tone::kStrong, 10), 10);
      continue;
    }
    out.command(2, start.preset, shell_text(start));
    if (!start.note.empty()) out.paragraph(12, start.note, Tone::kQuiet);
  }
  out.blank();
  std::vector<std::string> names;
  for (const auto& [name, text] : r.files) names.push_back(name);
  out.row(0, out.cell(fmt::format("written: {} in {}", fmt::join(names, ", "),
                                  line.shrink.out.string())));
  return out.take();
}

}  // namespace

int shrink_command(const CommandLine& line, Console& console) {
  const Result result = plan::shrink::shrink(line.shrink);
  for (const auto& [name, text] : result.files) {
    const std::filesystem::path file = line.shrink.out / name;
    if (!line.json.empty() && line.json != "-" && same_file(line.json, file))
      throw scenario::ScenarioError(
          {{"--json", 0, 0, "", line.json + " is a file of the model's folder; name another"}});
  }
  if (result.fits()) plan::shrink::write_folder(result, line.shrink);
  return deliver_result(to_json(result), text_of(result, line, console.out_style()),
                        result.fits() ? 0 : 1, line, console);
}

}  // namespace warmgate::cli
