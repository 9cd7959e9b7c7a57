#include "harness/run/spans.h"

#include <fmt/format.h>

#include <map>
#include <string>

#include "harness/target/spans/companion.h"

namespace warmgate::run {
namespace {

std::string with_endpoint(std::string text, const std::string& endpoint) {
  constexpr std::string_view kHole = "{endpoint}";
  for (std::size_t at = 0; (at = text.find(kHole, at)) != std::string::npos;) {
    text.replace(at, kHole.size(), endpoint);
    at += endpoint.size();
  }
  return text;
}

}  // namespace

std::unique_ptr<target::Companion> receive_spans(const target::SpanFacts& facts,
                                                 target::TargetSpec& spec) {
  target::PortLease lease = target::PortLease::free_port("127.0.0.1");
  for (target::WorkerSpec& worker : spec.workers) {
    const std::string endpoint = fmt::format("http://127.0.0.1:{}{}", lease.port(),
                                             target::SpanReceiver::path_of(worker.rank));
    // opentelemetry.io, "OpenTelemetry Protocol Exporter" and "SDK environment variables". Batches
    // wait five seconds by default, which an engine that dies may not have.
    for (const auto& [name, value] :
         std::map<std::string, std::string>{{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", endpoint},
                                            {"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/protobuf"},
                                            {"OTEL_EXPORTER_OTLP_TRACES_INSECURE", "true"},
                                            {"OTEL_BSP_SCHEDULE_DELAY", "200"}}) {
      worker.env.emplace(name, value);
    }
    for (const auto& [name, value] : facts.env) {
      worker.env.emplace(name, with_endpoint(value, endpoint));
    }
    for (const std::string& word : facts.argv) {
      worker.argv.push_back(with_endpoint(word, endpoint));
    }
  }
  auto out = target::make_span_companion(facts, std::move(lease), spec.companion);
  spec.companion = out.get();
  return out;
}

}  // namespace warmgate::run
