// A token attends to the same keys whichever way its step came: decode over cache pages and prefill
// over gathered rows give one result.
#include "kernels/cuda/attention/sparse_decode_testing.h"
#include "kernels/cuda/attention/sparse_prefill.h"

namespace warmgate::kernels::cuda {
namespace {

using namespace decode_testing;

class SamePositionTest : public DecodeTest {
 protected:
  // Of the problem's keys in list order, gathered as prefill gathers them; behind the lists and in
  // rows that nobody names: poison.
  std::vector<Bf16> prefill(const Problem& problem) {
    const Shape& s = problem.shape;
    const std::int64_t width = s.width + s.extra_width;
    std::vector<Bf16> rows(512, 0xFFFF);
    std::vector<std::int32_t> indices(s.tokens * width, 0), lens(s.tokens);
    for (std::int64_t t = 0; t < s.tokens; ++t) {
      std::int32_t* list = indices.data() + t * width;
      const auto add = [&](const cpu::Pages& pages, std::int32_t slot) {
        const auto row = static_cast<std::int32_t>(rows.size() / 512);
        list[lens[t]++] = slot < 0 ? -1 : row;
        if (slot < 0) return;
        rows.resize(rows.size() + 512);
        cpu::decode_ds_mla(pages, slot, rows.data() + 512 * row);
      };
      for (std::int64_t i = 0; i < problem.extra_lens[t]; ++i)
        add(problem.extra->pages, problem.extra_indices[t * s.extra_width + i]);
      for (std::int64_t i = 0; i < problem.lens[t]; ++i)
        add(problem.window->pages, problem.indices[t * s.width + i]);
    }
    const DeviceArray<Bf16> q(problem.q), kv(rows);
    const DeviceArray<std::int32_t> on_device(indices), lengths(lens);
    const DeviceArray<float> sink(problem.sink);
    DeviceArray<Bf16> out(static_cast<std::int64_t>(problem.q.size()));
    cpu::SparsePrefill p;
    p.tokens = s.tokens, p.heads = s.heads, p.width = width;
    p.q = q.data(), p.kv = kv.data(), p.indices = on_device.data(), p.lens = lengths.data();
    p.sink = sink.data(), p.out = out.data();
    run(p, launch_->get());
    return out.read();
  }
  void expect_same(const Problem& problem, const std::string& what) {
    OnDevice device(problem);
    const auto decoded = run_on(device, -1), prefilled = prefill(problem);
    const auto worst = reference::worst_row(widen(decoded), widen(prefilled));
    std::printf("%-60s difference %.2e\n", what.c_str(), worst.error);
    EXPECT_LE(worst.error, reference::kRowLimit) << what << ": row " << worst.row;
  }
};

TEST_F(SamePositionTest, DecodeEqualsPrefill) {
  for (const std::int64_t heads : {8, 64, 128}) {
    const std::string name = std::to_string(heads) + " heads, ";
    expect_same(problem({3, heads, 128, 512}, -1, -1), name + "both lists");
    expect_same(problem({3, heads, 128, 0}, -1, 0), name + "window");
    expect_same(problem({2, heads, 128, 192, 64, 2}, 128, 129), name + "pages of two rows");
  }
}

TEST_F(SamePositionTest, WithoutKeysAndWithHoles) {
  expect_same(problem({2, 64, 128, 64}, 0, 0), "no keys");
  expect_same(problem({2, 64, 128, 64}, 1, 0), "one key");
  Problem holes = problem({3, 64, 128, 256}, 128, 250);
  for (auto* list : {&holes.indices, &holes.extra_indices}) {
    for (std::int32_t& index : *list) index = below(3) == 0 ? -1 - below(9) : index;
  }
  holes.sink[0] = -kInfinity, holes.sink[1] = kInfinity, holes.sink[2] = 8;
  expect_same(holes, "holes and sinks");
}

}  // namespace
}  // namespace warmgate::kernels::cuda
