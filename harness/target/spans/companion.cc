#include "harness/target/spans/companion.h"

#include "harness/target/forwarding_companion.h"

namespace warmgate::target {
namespace {

class SpanCompanion : public ForwardingCompanion {
 public:
  SpanCompanion(SpanFacts facts, PortLease lease, Companion* inner)
      : ForwardingCompanion(inner), lease_(std::move(lease)), receiver_(std::move(facts)) {}

  void prepare(EventSink& sink, const std::string& marker) override {
    receiver_.open(sink);
    server_ = std::make_unique<LoopbackServer>(
        lease_.port(), [this](const ServedRequest& request) { return receiver_.serve(request); });
    try {
      ForwardingCompanion::prepare(sink, marker);
    } catch (...) {
      server_.reset();  // the sink is gone before this object is
      throw;
    }
  }
  // Exporters flush at exit, so the receiver stays until close().
  void stop() override {
    receiver_.mark_end();
    ForwardingCompanion::stop();
  }
  void close(const RunEnd& end) override {
    server_.reset();
    receiver_.close();
    ForwardingCompanion::close(end);
  }

 private:
  PortLease lease_;
  SpanReceiver receiver_;
  std::unique_ptr<LoopbackServer> server_;  // last: its thread uses the receiver
};

}  // namespace

std::unique_ptr<Companion> make_span_companion(SpanFacts facts, PortLease lease, Companion* inner) {
  return std::make_unique<SpanCompanion>(std::move(facts), std::move(lease), inner);
}

}  // namespace warmgate::target
