// For tests: memory with contents, tensors filled by hand, events that can be read back.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <deque>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <vector>

#include "harness/engine/ops/gemm.h"
#include "harness/engine/recorder.h"
#include "kernels/reference/matrix.h"
#include "kernels/reference/number.h"

namespace warmgate::engine::checks::testing {

using reference::Matrix;
using reference::Vector;
using reference::View;

inline std::uint16_t bf16_bits(double x) {
  const auto f = static_cast<float>(x);
  std::uint32_t bits;
  std::memcpy(&bits, &f, sizeof bits);
  return static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
inline double to_bf16(double x) {
  const std::uint32_t bits = std::uint32_t{bf16_bits(x)} << 16;
  float out;
  std::memcpy(&out, &bits, sizeof out);
  return out;
}

/// A recorder whose events lie in memory.
class EventLog {
 public:
  EventLog() : fd_(memfd_create("events", MFD_CLOEXEC)), recorder(writer_) {
    writer_.open_descriptor(fd_);
  }
  ~EventLog() { close(fd_); }
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;
  std::vector<nlohmann::json> events(const std::string& ev) const {
    std::string text;
    char buffer[1 << 14];
    for (off_t at = 0;;) {
      const ssize_t n = pread(fd_, buffer, sizeof buffer, at);
      if (n <= 0) break;
      text.append(buffer, static_cast<std::size_t>(n));
      at += n;
    }
    std::vector<nlohmann::json> out;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      auto event = nlohmann::json::parse(line);
      if (event["ev"] == ev) out.push_back(std::move(event));
    }
    return out;
  }

 private:
  int fd_;
  trace::EventWriter writer_;

 public:
  Recorder recorder;
};

class Memory {
 public:
  explicit Memory(std::uint32_t seed) : random_(seed) {}

  std::byte* at(const Tensor& t) const {
    return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(t.address));
  }
  /// Filled with 0xFF, block scales of weights included.
  Tensor make(DType dtype, Shape shape) {
    Tensor t = make_tensor(dtype, shape);
    held_.emplace_back(static_cast<std::size_t>(ops::weight_bytes(t)) + 16, std::byte{0xff});
    t.address = reinterpret_cast<std::uintptr_t>(held_.back().data());
    return t;
  }
  /// Values of a row: bf16 (rounded), fp32, fp8 codes, i32.
  void set(const Tensor& t, std::int64_t row, View values) const {
    std::byte* to = at(t) + row * t.strides[0] * bits_of(t.dtype) / 8;
    for (std::size_t i = 0; i < values.size(); ++i) put(t.dtype, to, i, values[i]);
  }
  Vector random(std::int64_t n, double scale = 1) {
    std::normal_distribution<double> normal(0, scale);
    Vector out(static_cast<std::size_t>(n));
    for (double& x : out) x = to_bf16(normal(random_));
    return out;
  }
  Tensor random_rows(DType dtype, Shape shape, double scale) {
    const Tensor t = make(dtype, shape);
    for (std::int64_t r = 0; r < t.rows(); ++r) set(t, r, random(t.elements() / t.rows(), scale));
    return t;
  }
  /// [out,in]: fp8 with a power of two for each block, or bf16.
  Tensor weight(DType dtype, std::int64_t out, std::int64_t in) {
    if (dtype != DType::kFp8) return random_rows(dtype, {out, in}, 1 / std::sqrt(double(in)));
    const Tensor t = make(dtype, {out, in});
    for (std::int64_t i = 0; i < t.bytes; ++i) {
      at(t)[i] = static_cast<std::byte>((random_() % 2) << 7 | (0x28 + random_() % 16));
    }
    for (std::int64_t i = 0; i < ops::scale_bytes(t); ++i) {
      at(t)[t.bytes + i] = static_cast<std::byte>(123 + random_() % 3);
    }
    return t;
  }
  std::mt19937& engine() { return random_; }

 private:
  static void put(DType dtype, std::byte* to, std::size_t i, double x) {
    if (dtype == DType::kBf16) {
      const std::uint16_t bits = bf16_bits(x);
      std::memcpy(to + 2 * i, &bits, 2);
    } else if (dtype == DType::kFp32) {
      const auto f = static_cast<float>(x);
      std::memcpy(to + 4 * i, &f, 4);
    } else if (dtype == DType::kI32) {
      const auto n = static_cast<std::int32_t>(x);
      std::memcpy(to + 4 * i, &n, 4);
    } else {
      to[i] = std::byte{reference::e4m3_code(x)};
    }
  }
  std::mt19937 random_;
  std::deque<std::vector<std::byte>> held_;
};

}  // namespace warmgate::engine::checks::testing
