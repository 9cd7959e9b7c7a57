#include "harness/contract/hang_text.h"

#include <fmt/format.h>

#include <tuple>
#include <vector>

#include "harness/contract/kernel_name.h"

namespace warmgate::contract {

namespace {

// The innermost frame that is the program's own and no library's; the innermost one of all where
// every frame is a library's.
std::string own_frame(const std::vector<std::string>& frames) {
  for (const std::string& frame : frames) {
    const bool library = frame.find("/site-packages/") != std::string::npos ||
                         frame.find("/dist-packages/") != std::string::npos ||
                         frame.find("/lib/python3") != std::string::npos;
    if (!library) return frame;
  }
  return frames.front();
}

}  // namespace

std::string hang_text(const trace::Event& hang) {
  std::string out;
  const auto add = [&](const std::string& part) { out += (out.empty() ? "" : ", ") + part; };
  if (const auto call = text(hang, "call"); !call.empty())
    add(fmt::format("in {} for {:.1f} s", call, hang.real("inside_s")));
  const auto kernels = hang.strings("kernels");
  if (!kernels.empty())
    add(fmt::format("in kernel {}{}", kernel_name(kernels.front()),
                    kernels.size() > 1 ? fmt::format(" and {} more", kernels.size() - 1) : ""));
  if (const auto frames = hang.strings("frames"); !frames.empty()) add("at " + own_frame(frames));
  if (!out.empty()) return out;
  const auto waits = text(hang, "waits");
  if (text(hang, "state") == "R") return "running on the CPU";
  return waits.empty() ? "" : fmt::format("waiting in {}", waits);
}

std::string most_telling_hang(const View& view) {
  const trace::Event* best = nullptr;
  // A parent that waits for its children says least.
  auto weight = [](const trace::Event& e) {
    const auto waits = text(e, "waits");
    return std::tuple(!e.strings("kernels").empty(), e.real("inside_s"),
                      !e.strings("frames").empty() && !e.flag("idle"), !e.strings("frames").empty(),
                      waits != "wait4" && waits != "waitid");
  };
  for (const trace::Event* each : view.trace().of("hang")) {
    if (!hang_text(*each).empty() && (best == nullptr || weight(*each) > weight(*best)))
      best = each;
  }
  if (best == nullptr) return "";
  const std::string who = best->rank && *best->rank >= 0 ? fmt::format("rank {}", *best->rank)
                                                         : fmt::format("pid {}", best->num("pid"));
  return who + " was " + hang_text(*best);
}

}  // namespace warmgate::contract
