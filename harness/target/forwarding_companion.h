// Around another companion, or alone: everything is the inner one's, and who derives adds to it.
#pragma once

#include "harness/target/companion.h"

namespace warmgate::target {

class ForwardingCompanion : public Companion {
 public:
  /// `inner` may be null (a run that ends when its workers do), else it outlives this.
  explicit ForwardingCompanion(Companion* inner) : inner_(inner) {}

  void prepare(EventSink& sink, const std::string& marker) override {
    if (inner_ != nullptr) inner_->prepare(sink, marker);
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
  void stop() override {
    if (inner_ != nullptr) inner_->stop();
  }
  void close(const RunEnd& end) override {
    if (inner_ != nullptr) inner_->close(end);
  }

 private:
  Companion* inner_;
};

}  // namespace warmgate::target
