#include "harness/target/spans/companion.h"

namespace warmgate::target {
namespace {

class SpanCompanion : public Companion {
 public:
  SpanCompanion(SpanFacts facts, PortLease lease, Companion* inner)
      : lease_(std::move(lease)), receiver_(std::move(facts)), inner_(inner) {}

  void prepare(EventSink& sink, const std::string& marker) override {
    receiver_.open(sink);
    server_ = std::make_unique<LoopbackServer>(
        lease_.port(), [this](const ServedRequest& request) { return receiver_.serve(request); });
    try {
      if (inner_ != nullptr) inner_->prepare(sink, marker);
    } catch (...) {
      server_.reset();  // the sink is gone before this object is
      throw;
    }
  }
  void started(const Started& worker) override {
    if (inner_ != nullptr) inner_->started(worker);
  }
  void start() override {
    if (inner_ != nullptr) inner_->start();
  }
  void output(int rank, std::string_view stream, std::string_view bytes,
              std::int64_t t_ns) override {
    if (inner_ != nullptr) inner_->output(rank, stream, bytes, t_ns);
  }
  void ended(const verdict::WorkerEnd& end) override {
    if (inner_ != nullptr) inner_->ended(end);
  }
  // Alone it waits for nobody: the run is over when its workers are.
  bool needed(int rank) const override { return inner_ != nullptr && inner_->needed(rank); }
  bool finished() const override { return inner_ != nullptr && inner_->finished(); }
  // Exporters flush at exit, so the receiver stays until close().
  void stop() override {
    receiver_.mark_end();
    if (inner_ != nullptr) inner_->stop();
  }
  void close(const RunEnd& end) override {
    server_.reset();
    receiver_.close();
    if (inner_ != nullptr) inner_->close(end);
  }

 private:
  PortLease lease_;
  SpanReceiver receiver_;
  Companion* inner_;
  std::unique_ptr<LoopbackServer> server_;  // last: its thread uses the receiver
};

}  // namespace

std::unique_ptr<Companion> make_span_companion(SpanFacts facts, PortLease lease, Companion* inner) {
  return std::make_unique<SpanCompanion>(std::move(facts), std::move(lease), inner);
}

}  // namespace warmgate::target
