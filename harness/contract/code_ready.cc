// code-ready: code that serving runs was there when the engine said ready. Told apart are code that
// a process compiled or read itself (a late compilation) and a library's own kernels, which drivers
// load lazily at their first use.
#include <fmt/format.h>

#include "harness/contract/builtin.h"
#include "harness/contract/fold.h"
#include "harness/contract/kernel_name.h"
#include "harness/contract/probe_view.h"

namespace warmgate::contract {
namespace {

constexpr const char* kCodeReady = "code-ready";

// With the first one's symbol, which a key must keep, or its name.
std::string kernels_of(const trace::Event& e, bool symbol) {
  const std::vector<std::string> names = e.strings("names");
  if (names.empty()) return "a module without kernels";
  const auto all = static_cast<std::size_t>(e.num("kernels", 1));
  return (symbol ? names.front() : kernel_name(names.front())) +
         (all > 1 ? fmt::format(" and {} more", all - 1) : "");
}

Finding finding(std::string key, std::string phase, std::size_t event) {
  Finding f;
  f.contract = kCodeReady;
  f.key = std::move(key);
  f.phase = std::move(phase);
  f.events = {event};
  return f;
}

class CodeReady : public Contract {
 public:
  std::string_view name() const override { return kCodeReady; }
  std::string_view promise() const override {
    return "no code is compiled for a device after ready or inside a capture, and the host waits "
           "for no device inside one";
  }
  std::vector<std::string> needs() const override { return {}; }

  Result judge(const Context& context) const override {
    const View& view = view_of(context);
    const ProbeView probe(view);
    if (auto not_judged = probe.not_judged(kCodeReady, false)) return *not_judged;
    Fold findings, notes;
    for (const std::size_t i : probe.events()) {
      const trace::Event& e = view.event(i);
      const bool captured = !text(e, "in_capture").empty(), late = probe.after_ready(e);
      if (e.ev == "sync" && captured) {
        findings.add(waited(e, i), e.str("call"));
      } else if (e.ev == "module" && (captured || late)) {
        const bool own = text(e, "origin") == "memory" && !e.flag("lazy");
        (own ? findings : notes).add(loaded(e, i, captured, own), std::to_string(i));
      }
    }
    Result result = conclude(kCodeReady, findings.take());
    result.notes = notes.take();
    result.why = probe.limit();
    if (result.findings.empty()) {
      if (auto not_judged = probe.not_judged(kCodeReady, true)) return *not_judged;
    }
    return result;
  }

 private:
  static Finding loaded(const trace::Event& e, std::size_t i, bool captured, bool own) {
    Finding f = finding((captured ? "capture/"
                         : own    ? "late/"
                                  : "lazy/") +
                            kernels_of(e, true),
                        captured ? "capture" : "serve", i);
    f.expected = captured ? "no code arrives while a stream is captured"
                          : "every kernel was there when the engine said ready";
    f.seen =
        fmt::format("{} of {}", rounded_bytes(e.num("bytes")),
                    own ? "code that the process compiled or read" : "a library, loaded lazily");
    f.message = fmt::format("{} arrived on the device {} ({})", kernels_of(e, false),
                            captured ? "inside a capture" : "after ready", f.seen);
    return f;
  }

  static Finding waited(const trace::Event& e, std::size_t i) {
    Finding f = finding("capture/" + e.str("call"), "capture", i);
    f.expected = "the host waits for no device while it captures";
    f.seen = e.str("call");
    f.message = fmt::format(
        "{} while a stream was captured: a graph does not hold the wait, and a "
        "stricter capture mode fails",
        f.seen);
    return f;
  }
};

}  // namespace

const Contract& code_ready_contract() {
  static const CodeReady contract;
  return contract;
}

}  // namespace warmgate::contract
