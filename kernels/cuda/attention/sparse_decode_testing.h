// What the tests of sparse decode share: random calls with poison around, the float64 oracle, and
// every way to run a call.
#pragma once

#include <cmath>
#include <limits>
#include <memory>

#include "kernels/cpu/testing.h"
#include "kernels/cuda/attention/sparse_decode.h"
#include "kernels/cuda/attention/sparse_decode_paths.h"
#include "kernels/cuda/test_device.h"
#include "kernels/reference/attention.h"
#include "kernels/reference/compare.h"

namespace warmgate::kernels::cuda::decode_testing {

using cpu::Bf16;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Shape {
  std::int64_t tokens = 1, heads = 64, width = 128, extra_width = 512;
  std::int64_t window_rows = 64, extra_rows = 64;
};

// A call with its memory on the host; lists name random rows, all other rows are poison.
struct Problem {
  Shape shape;
  std::vector<Bf16> q;
  std::vector<float> sink;
  std::vector<std::int32_t> indices, lens, extra_indices, extra_lens;
  std::unique_ptr<cpu::PageMemory> window, extra;
  bool counts_padding = false;

  cpu::SparseDecode host(Bf16* out) const {
    cpu::SparseDecode p;
    p.tokens = shape.tokens, p.heads = shape.heads, p.width = shape.width;
    p.q = q.data(), p.sink = sink.data(), p.out = out;
    p.window = window->pages, p.indices = indices.data(), p.lens = lens.data();
    if (shape.extra_width > 0) {
      p.extra_width = shape.extra_width, p.extra = extra->pages;
      p.extra_indices = extra_indices.data(), p.extra_lens = extra_lens.data();
    }
    p.counts_padding = counts_padding;
    return p;
  }
};

// The same on the device.
struct OnDevice {
  explicit OnDevice(const Problem& from)
      : q(from.q),
        sink(from.sink),
        indices(from.indices),
        lens(from.lens),
        extra_indices(from.extra_indices),
        extra_lens(from.extra_lens),
        window(from.window->memory),
        extra(from.extra->memory),
        out(static_cast<std::int64_t>(from.q.size())),
        p(from.host(out.data())) {
    p.q = q.data(), p.sink = sink.data(), p.window.base = window.data();
    p.indices = indices.data(), p.lens = lens.data();
    if (p.extra_indices != nullptr) {
      p.extra.base = extra.data();
      p.extra_indices = extra_indices.data(), p.extra_lens = extra_lens.data();
    }
  }
  DeviceArray<Bf16> q;
  DeviceArray<float> sink;
  DeviceArray<std::int32_t> indices, lens, extra_indices, extra_lens;
  DeviceArray<std::uint8_t> window, extra;
  DeviceArray<Bf16> out;
  cpu::SparseDecode p;
};

class DecodeTest : public cpu::RandomTest {
 protected:
  void SetUp() override {
    if (!no_gpu().empty()) GTEST_SKIP() << no_gpu();
    launch_ = std::make_unique<TestLaunch>();
  }
  bool hopper() const { return launch_->get().arch == 90; }

  /// Lengths below 0: random ones. Scale bytes within `spread` of 2^-4.
  Problem problem(const Shape& shape, std::int64_t window_len, std::int64_t extra_len,
                  int spread = 3) {
    Problem out;
    out.shape = shape;
    out.q = bf16s(shape.tokens * shape.heads * 512, 1);
    out.sink = floats(shape.heads);
    fill(shape.tokens, shape.width, shape.window_rows, window_len, spread, out.window, out.indices,
         out.lens);
    fill(shape.tokens, shape.extra_width, shape.extra_rows, extra_len, spread, out.extra,
         out.extra_indices, out.extra_lens);
    return out;
  }

  void fill(std::int64_t tokens, std::int64_t width, std::int64_t rows, std::int64_t len,
            int spread, std::unique_ptr<cpu::PageMemory>& memory,
            std::vector<std::int32_t>& indices, std::vector<std::int32_t>& lens) {
    const std::int64_t slots = std::max<std::int64_t>(2 * width, 64), pages = slots / rows + 2;
    // Padding as engines have it, to a multiple of 576.
    const std::int64_t padding = (rows * 584 + 575) / 576 * 576 - rows * 584;
    memory = std::make_unique<cpu::PageMemory>(pages, rows, 584, padding);
    indices.assign(static_cast<std::size_t>(std::max<std::int64_t>(1, tokens * width)), -1);
    lens.assign(static_cast<std::size_t>(tokens), 0);
    for (std::int64_t t = 0; t < tokens && width > 0; ++t) {
      lens[t] = static_cast<std::int32_t>(len < 0 ? below(width + 1) : std::min(len, width));
      const auto order = shuffled(pages * rows);
      for (std::int64_t i = 0; i < width; ++i) {
        // Behind the length: rows of poison, or nothing at all.
        indices[t * width + i] = order[i];
        if (i < lens[t]) encode(memory->pages, order[i], spread);
        if (i >= lens[t] && i % 3 == 0) indices[t * width + i] = -1;
      }
    }
  }
  void encode(const cpu::Pages& pages, std::int64_t slot, int spread) {
    std::uint8_t* page = pages.base + slot / pages.rows * pages.stride;
    const std::int64_t row = slot % pages.rows;
    const auto codes = e4m3s(448);
    const auto scales = bytes(7, 119 - spread, 119 + spread);
    const auto rope = bf16s(64, 3);
    std::memcpy(page + row * 576, codes.data(), 448);
    std::memcpy(page + row * 576 + 448, rope.data(), 128);
    std::memcpy(page + pages.rows * 576 + row * 8, scales.data(), 7);
    page[pages.rows * 576 + row * 8 + 7] = 0;
  }

  /// What every head row should be, in float64.
  static reference::Matrix expected(const Problem& problem) {
    const Shape& s = problem.shape;
    reference::Matrix out(s.tokens * s.heads, 512);
    for (std::int64_t t = 0; t < s.tokens; ++t) {
      std::vector<double> keys;
      std::int64_t count = 0;
      const auto add = [&](const cpu::Pages& pages, std::int32_t slot) {
        if (slot < 0) return;
        float row[512];
        cpu::decode_ds_mla(pages, slot, row);
        keys.insert(keys.end(), row, row + 512);
        ++count;
      };
      for (std::int64_t i = 0; i < std::min<std::int64_t>(s.extra_width, problem.extra_lens[t]);
           ++i)
        add(problem.extra->pages, problem.extra_indices[t * s.extra_width + i]);
      std::int64_t window = std::min<std::int64_t>(s.width, problem.lens[t]);
      if (problem.counts_padding && window > 0) window = s.width;
      for (std::int64_t i = 0; i < window; ++i) {
        const std::int32_t slot = problem.indices[t * s.width + i];
        add(problem.window->pages, problem.counts_padding ? std::max(slot, 0) : slot);
      }
      const reference::Matrix matrix(count, count == 0 ? 0 : 512, keys);
      for (std::int64_t h = 0; h < s.heads; ++h) {
        const std::int64_t row = t * s.heads + h;
        reference::Vector q(512);
        for (std::int64_t c = 0; c < 512; ++c) q[c] = cpu::to_float(problem.q[row * 512 + c]);
        out.set_row(row, reference::attend(q, matrix, problem.sink[h], std::pow(512.0, -0.5)));
      }
    }
    return out;
  }
  static reference::Matrix widen(const std::vector<Bf16>& rows) {
    reference::Vector values(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) values[i] = cpu::to_float(rows[i]);
    return {static_cast<std::int64_t>(rows.size() / 512), 512, values};
  }
  /// Of every head row; fails above the limit, prints the worst.
  static void expect_right(const reference::Matrix& expected, const std::vector<Bf16>& out,
                           const std::string& what) {
    const reference::Worst worst = reference::worst_row(widen(out), expected);
    std::printf("%-60s error %.2e\n", what.c_str(), worst.error);
    EXPECT_LE(worst.error, reference::kRowLimit) << what << ": row " << worst.row;
  }

  bool possible(int splits) const {
    if (splits <= 0) return true;
    return hopper() && (splits % 100 <= kAlwaysInCluster || places_large_clusters());
  }
  /// splits 0: the general kernel; -1: what run() chooses; 100·groups + cluster.
  std::vector<Bf16> run_on(OnDevice& d, int splits) {
    d.out.poison();
    if (splits < 0) {
      EXPECT_FALSE(can_run(d.p, launch_->get()).has_value()) << *can_run(d.p, launch_->get());
      run(d.p, launch_->get());
    } else if (splits == 0) {
      run_general_decode(d.p, launch_->get());
    } else {
      run_hopper_decode(d.p, launch_->get(), {splits % 100, std::max(1, splits / 100)});
    }
    auto out = d.out.read();
    EXPECT_EQ(d.out.overrun(), 0);
    return out;
  }
  void check_all(const Problem& problem, const std::string& what, std::vector<int> splits) {
    OnDevice device(problem);
    const reference::Matrix right = expected(problem);
    for (const int s : splits) {
      if (!possible(s)) continue;
      expect_right(right, run_on(device, s), what + ", splits " + std::to_string(s));
    }
  }

  std::unique_ptr<TestLaunch> launch_;
};

}  // namespace warmgate::kernels::cuda::decode_testing
