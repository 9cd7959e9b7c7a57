// For tests: a GPU's runtime that notes what it is asked for and has no GPU.
#pragma once

#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/cuda/runtime.h"

namespace warmgate::engine::testing {

class NotedRuntime : public kernels::cuda::Runtime {
 public:
  std::vector<std::string> calls;                // of graphs and silence
  std::map<std::uint64_t, std::int64_t> mapped;  // address → bytes
  std::map<std::uint64_t, std::int64_t> filled;  // the last fill at an address
  std::int64_t room = std::int64_t{1} << 50;     // of physical memory

  const kernels::cuda::Facts& facts() const override { return facts_; }
  std::int64_t free_bytes() const override { return room; }
  std::uint64_t reserve(std::int64_t) override { return kBase; }
  void release(std::uint64_t, std::int64_t) override { calls.push_back("release"); }
  void map(std::uint64_t address, std::int64_t bytes) override {
    if (address % kUnit != 0 || bytes % kUnit != 0) throw std::logic_error("not whole units");
    if (bytes > room)
      throw kernels::cuda::DeviceFault("cuMemCreate", "cudaErrorMemoryAllocation", "full");
    const auto next = mapped.lower_bound(address);
    if (next != mapped.end() && next->first < address + static_cast<std::uint64_t>(bytes))
      throw std::logic_error("mapped twice");
    room -= bytes;
    mapped[address] = bytes;
  }
  void unmap(std::uint64_t address, std::int64_t bytes) override {
    if (mapped.at(address) != bytes) throw std::logic_error("not what one map gave");
    room += bytes;
    mapped.erase(address);
  }
  std::int64_t granularity() const override { return kUnit; }
  void mute(bool muted) override { calls.push_back(muted ? "mute" : "unmute"); }
  void fill(std::uint64_t address, std::int64_t bytes, std::uint8_t) override {
    if (broken) throw kernels::cuda::DeviceFault("cudaMemset", "cudaErrorIllegalAddress", "gone");
    filled[address] = bytes;
  }
  void write(std::uint64_t, const void*, std::int64_t) override {}
  void read(std::uint64_t, void*, std::int64_t) override {}
  void gather(const kernels::Piece*, std::size_t, std::byte*) override {}
  void synchronize(const char*) override {}
  void begin_capture() override { calls.push_back("begin"); }
  kernels::cuda::Graph end_capture() override {
    calls.push_back("end");
    return ++graphs_;
  }
  void abandon_capture() override { calls.push_back("abandon"); }
  void replay(kernels::cuda::Graph graph) override {
    calls.push_back("replay " + std::to_string(graph));
  }
  void destroy(kernels::cuda::Graph) override {}
  kernels::cuda::Function load(const std::string&, const std::string&,
                               const std::string&) override {
    return 0;
  }
  void launch(kernels::cuda::Function, unsigned, unsigned, unsigned, std::vector<void*>,
              const char*) override {}
  kernels::Kernels& kernels() override { throw std::logic_error("no kernels"); }

  bool mapped_at(std::uint64_t address) const {
    auto it = mapped.upper_bound(address);
    if (it == mapped.begin()) return false;
    --it;
    return address < it->first + static_cast<std::uint64_t>(it->second);
  }
  bool broken = false;
  static constexpr std::uint64_t kBase = std::uint64_t{1} << 40;
  static constexpr std::int64_t kUnit = std::int64_t{2} << 20;

 private:
  kernels::cuda::Facts facts_;
  kernels::cuda::Graph graphs_ = 0;
};

}  // namespace warmgate::engine::testing
