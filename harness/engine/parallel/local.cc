#include <algorithm>

#include "harness/engine/parallel/collectives.h"
#include "harness/engine/parallel/sequence.h"

namespace warmgate::engine {

namespace {

class LocalCollectives final : public Collectives {
 public:
  int rank() const override { return 0; }
  int world() const override { return 1; }
  std::int64_t all_reduce(std::string_view communicator, std::int64_t) override {
    return numbers_.next(communicator);
  }
  std::int64_t all_gather(std::string_view communicator, std::int64_t) override {
    return numbers_.next(communicator);
  }
  std::int64_t all_reduce(std::string_view communicator, std::span<std::byte>, Element) override {
    return numbers_.next(communicator);
  }
  std::int64_t all_gather(std::string_view communicator, std::span<const std::byte> mine,
                          std::span<std::byte> all) override {
    if (all.size() != mine.size()) throw std::invalid_argument("all_gather: one rank, other sizes");
    std::copy(mine.begin(), mine.end(), all.begin());
    return numbers_.next(communicator);
  }
  std::int64_t barrier(std::string_view communicator) override {
    return numbers_.next(communicator);
  }
  std::int64_t all_min(std::string_view communicator, std::int64_t value) override {
    numbers_.next(communicator);
    return value;
  }
  void abandon(std::string_view) override {}
  std::int64_t last_seq(std::string_view communicator) const override {
    return numbers_.last(communicator);
  }

 private:
  SequenceNumbers numbers_;
};

}  // namespace

std::unique_ptr<Collectives> make_local_collectives() {
  return std::make_unique<LocalCollectives>();
}

}  // namespace warmgate::engine
