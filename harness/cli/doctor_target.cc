// doctor --target: contract by channel, and below the table what is missing and what to ask for.
#include <fmt/format.h>

#include <map>

#include "harness/cli/commands.h"
#include "harness/cli/result_output.h"
#include "harness/run/observable.h"
#include "reports/printer.h"

namespace warmgate::cli {
namespace {

using contract::Extent;
using reports::Tone;

constexpr std::size_t kContractColumn = 21, kChannelColumn = 9;

Tone tone_of_extent(Extent extent) {
  switch (extent) {
    case Extent::kFull:
      return Tone::kGood;
    case Extent::kPartial:
      return Tone::kDoubt;
    case Extent::kInferred:
      return Tone::kDoubt;
    case Extent::kNone:
      return Tone::kQuiet;
  }
  return Tone::kQuiet;
}

void print_table(reports::Printer& out, const run::Observable& all) {
  std::string head = out.cell("contract", Tone::kStrong, kContractColumn);
  for (const run::ObservableChannel& channel : all.channels) {
    head +=
        out.cell(channel.info.name, channel.there ? Tone::kStrong : Tone::kQuiet, kChannelColumn);
  }
  out.row(0, head);
  for (const run::ObservableContract& row : all.contracts) {
    std::string line = out.cell(row.contract, Tone::kPlain, kContractColumn);
    for (const Extent extent : row.extents) {
      line += out.cell(extent == Extent::kNone ? "-" : to_string(extent), tone_of_extent(extent),
                       kChannelColumn);
    }
    out.row(0, line);
  }
}

void print_under(reports::Printer& out, const std::string& name, const std::string& text,
                 Tone tone = Tone::kPlain) {
  out.paragraph(2, text, tone, out.cell(name, Tone::kPlain, kContractColumn), kContractColumn);
}

void print_channels(reports::Printer& out, const run::Observable& all) {
  out.blank();
  out.row(0, out.cell("channels", Tone::kStrong));
  for (const run::ObservableChannel& channel : all.channels) {
    const std::string name(channel.info.name);
    if (!channel.there) {
      print_under(out, name, "not here: " + channel.why, Tone::kDoubt);
    } else if (!channel.info.probe.empty()) {
      print_under(out, name, fmt::format("{}; --probe {}", channel.info.about, channel.info.probe));
    } else if (name == "own") {
      print_under(out, name, "up to the engine: as it is released it sends none");
    } else {
      print_under(out, name, std::string(channel.info.about));
    }
  }
}

void print_limits(reports::Printer& out, const run::Observable& all) {
  bool headed = false;
  for (const run::ObservableContract& row : all.contracts) {
    // Only what a cell still says.
    const bool limited = std::any_of(row.extents.begin(), row.extents.end(), [](Extent extent) {
      return extent == Extent::kPartial || extent == Extent::kInferred;
    });
    if (!limited || row.limits.empty()) continue;
    if (!headed) {
      out.blank();
      out.row(0, out.cell("partial and inferred", Tone::kStrong));
    }
    headed = true;
    print_under(out, row.contract, row.limits, Tone::kQuiet);
  }
  for (const run::ObservableContract& row : all.contracts) {
    if (row.contract != "speculation-live" || row.lost.empty()) continue;
    print_under(out, row.contract, "not here: " + row.lost.front(), Tone::kDoubt);
  }
}

}  // namespace

int doctor_target_command(const CommandLine& line, Console& console) {
  const target::ServerPreset preset =
      target::find_preset(line.target_preset, target::presets_folder(line.run.load.fixtures));
  const run::Observable all = run::observable(preset, run::doctor(line.run));
  nlohmann::ordered_json json;
  json["schema"] = "doctor-target/1.0";
  json["warmgate"] = WARMGATE_VERSION;
  json["preset"] = all.preset;
  json["engine"] = all.engine;
  for (const run::ObservableChannel& channel : all.channels) {
    json["channels"].push_back({{"name", channel.info.name},
                                {"about", channel.info.about},
                                {"probe", channel.info.probe},
                                {"there", channel.there},
                                {"why", channel.why}});
  }
  for (const run::ObservableContract& row : all.contracts) {
    nlohmann::ordered_json extents;
    for (std::size_t i = 0; i < row.extents.size(); ++i) {
      extents[std::string(all.channels[i].info.name)] = to_string(row.extents[i]);
    }
    json["contracts"].push_back({{"contract", row.contract},
                                 {"promise", row.promise},
                                 {"channels", std::move(extents)},
                                 {"limits", row.limits},
                                 {"lost", row.lost}});
  }
  reports::Printer out(console.out_style(), {});
  out.row(0,
          out.cell(fmt::format("{} ({}) on this machine", all.preset, all.engine), Tone::kStrong));
  out.blank();
  print_table(out, all);
  print_channels(out, all);
  print_limits(out, all);
  return deliver_result(json, out.take(), 0, line, console);
}

}  // namespace warmgate::cli
