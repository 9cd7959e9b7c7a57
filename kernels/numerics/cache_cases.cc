// Cache rows: encode, insert, gather. Given the same bf16 rows all of it is exact.
#include <cstring>

#include "kernels/cpu/indexer.h"
#include "kernels/cpu/pages.h"
#include "kernels/numerics/cases.h"
#include "kernels/numerics/device.h"
#include "kernels/numerics/paged.h"
#include "kernels/reference/number.h"

namespace warmgate::numerics {
namespace {

namespace cpu = kernels::cpu;
namespace ref = reference;

// Rows of every size: ordinary, tiny (the floor decides), huge, zero, one outlier, signed zeros.
std::vector<Bf16> any_row(Random& random, std::int64_t i, std::int64_t width) {
  static const double sizes[] = {1, 1e-3, 1e-6, 1e-9, 300, 1e6};
  auto row = random.bf16(width, sizes[i % 6]);
  if (i % 7 == 3) std::fill(row.begin(), row.end(), Bf16{0});
  if (i % 7 == 5)
    row[static_cast<std::size_t>(random.integer(0, width - 1))] = ref::bf16_code(5000);
  if (i % 11 == 2) row[0] = 0x8000;
  return row;
}

void insert_and_read(Random& random, Table& table) {
  const std::int64_t length = 200, stride = 520;
  Cache cache = Cache::ds_mla(random, {length, 70}, 64);
  std::vector<Bf16> k;
  std::vector<std::int64_t> slots;
  std::vector<std::pair<std::int64_t, std::int64_t>> at;
  for (std::int64_t r = 0; r < 2; ++r) {
    for (std::int64_t p = 0; p < (r == 0 ? length : 70); ++p) {
      const auto row = any_row(random, p, 512);
      k.insert(k.end(), row.begin(), row.end());
      k.resize(k.size() + static_cast<std::size_t>(stride - 512), Bf16{0xFFFF});
      slots.push_back(p % 9 == 8 ? -1 : cache.slot(r, p));
      at.emplace_back(r, p);
    }
  }
  const std::vector<std::uint8_t> before = cache.memory();
  const auto tokens = static_cast<std::int64_t>(slots.size());
  device()->insert_ds_mla({tokens, k.data(), stride, slots.data(), cache.op()});
  std::int64_t bytes = 0, read = 0, read_fp32 = 0;
  for (std::int64_t t = 0; t < tokens; ++t) {
    const auto index = static_cast<std::size_t>(t);
    if (slots[index] < 0) continue;
    const auto [r, p] = at[index];
    const ref::Place place = ref::place(cache.table(r), 64, p);
    const ref::DsMlaRow stored = ref::ds_mla_row(cache.pages().page(place.block), 64, place.row);
    const ref::DsMlaRow want = ref::encode_ds_mla(
        from_bf16(std::span(k).subspan(index * static_cast<std::size_t>(stride), 512)));
    bytes += ref::mismatches(stored.data, want.data) + ref::mismatches(stored.scale, want.scale);
    const ref::Vector values = ref::decode_ds_mla(stored);
    Output<Bf16> one(512);
    Output<float> wide(512);
    cpu::decode_ds_mla(cache.op(), slots[index], one.data());
    cpu::decode_ds_mla(cache.op(), slots[index], wide.data());
    read += differing(from_bf16(one.view()), values) + one.overrun();
    read_fp32 += differing(from_fp32(wide.view()), values) + wide.overrun();
  }
  const std::string inputs = "270 rows of all sizes, 30 without a slot";
  table.exact("cache row: encode, insert", inputs, bytes, cache.disturbed(before, slots));
  table.exact("cache row: read as bf16", inputs, read);
  table.exact("cache row: read as fp32", inputs, read_fp32);

  std::int64_t encoded = 0;
  for (std::int64_t i = 0; i < 40; ++i) {
    const auto row = any_row(random, i, 512);
    const ref::Vector values = from_bf16(row);
    std::vector<float> channels(values.begin(), values.end());
    Output<std::uint8_t> data(576, 0xFF), scale(8, 0xFE);
    cpu::encode_ds_mla(channels.data(), data.data(), scale.data());
    const ref::DsMlaRow want = ref::encode_ds_mla(values);
    encoded += ref::mismatches(std::as_bytes(data.view()), want.data) +
               ref::mismatches(std::as_bytes(scale.view()), want.scale) + data.overrun() +
               scale.overrun();
  }
  table.exact("cache row: encode alone", "40 rows of all sizes", encoded);
}

// The last gather_len raw rows, or all complete entries, of several requests.
void gather(Random& random, Table& table) {
  const std::vector<std::int64_t> lengths{1, 64, 65, 300, 5, 129};
  const auto requests = static_cast<std::int64_t>(lengths.size());
  for (const std::int64_t ratio : {1, 4, 128}) {
    std::vector<std::int64_t> kept;
    for (const std::int64_t l : lengths) kept.push_back(ratio == 1 ? l : l / ratio + 1);
    Cache cache = Cache::ds_mla(random, kept, ratio == 128 ? 2 : 64);
    cache.fill_ds_mla(random);
    std::vector<std::int32_t> seq, gathered;
    std::int64_t longest = 0;
    for (const std::int64_t l : lengths) {
      seq.push_back(static_cast<std::int32_t>(l));
      gathered.push_back(static_cast<std::int32_t>(random.integer(1, l)));
      longest = std::max(longest, ratio == 1 ? gathered.back() : l / ratio);
    }
    const std::int64_t offset = random.integer(0, 9), rows = offset + longest + 2;
    Output<Bf16> kv(requests * rows * 512);
    device()->dequant_gather({requests, ratio, offset, rows * 512, seq.data(),
                              ratio == 1 ? gathered.data() : nullptr, cache.op(), cache.op_table(),
                              kv.data()});
    std::int64_t differ = 0, poisoned = kv.overrun();
    for (std::int64_t b = 0; b < requests; ++b) {
      const auto r = static_cast<std::size_t>(b);
      const std::int64_t count = ratio == 1 ? gathered[r] : lengths[r] / ratio;
      const std::int64_t first = ratio == 1 ? lengths[r] - count : 0;
      const ref::Matrix want = ref::ds_mla_rows(cache.pages(), cache.table(b), first, count);
      const std::int64_t start = (b * rows + offset) * 512;
      differ += differing(from_bf16(kv.view().subspan(static_cast<std::size_t>(start),
                                                      static_cast<std::size_t>(count * 512))),
                          want.values);
      poisoned += kv.written(b * rows * 512, offset * 512);
      poisoned += kv.written(start + count * 512, (rows - offset - count) * 512);
    }
    table.exact("gather into the workspace",
                "ratio " + std::to_string(ratio) + ", lengths 1,64,65,300,5,129", differ, poisoned);
  }
}

void indexer_rows(Random& random, Table& table) {
  for (const bool fp4 : {false, true}) {
    const auto format = fp4 ? cpu::IndexFormat::kMxfp4 : cpu::IndexFormat::kFp8;
    const std::int64_t width = cpu::index_value_bytes(format);
    std::int64_t bytes = 0, read = 0;
    for (std::int64_t i = 0; i < 60; ++i) {
      const ref::Vector row = from_bf16(any_row(random, i, 128));
      std::vector<float> channels(row.begin(), row.end());
      Output<std::uint8_t> data(width, 0xFE), scale(4, 0xFE);
      cpu::encode_index_row(format, channels.data(), data.data(), scale.data());
      ref::Vector values;
      const auto compare = [&](const auto& want) {
        bytes += ref::mismatches(std::as_bytes(data.view()), want.data) +
                 ref::mismatches(std::as_bytes(scale.view()), want.scale);
      };
      if (fp4) {
        const ref::IndexerRowFp4 want = ref::encode_indexer_fp4(row);
        compare(want);
        values = ref::decode_indexer_fp4(want);
      } else {
        const ref::IndexerRow want = ref::encode_indexer(row);
        compare(want);
        values = ref::decode_indexer(want);
      }
      Output<float> back(128);
      cpu::decode_index_row(format, data.data(), scale.data(), back.data());
      read += differing(from_fp32(back.view()), values) + back.overrun() + data.overrun() +
              scale.overrun();
    }
    const char* name = fp4 ? "MXFP4, 60 rows of all sizes" : "fp8, 60 rows of all sizes";
    table.exact("indexer key: encode", name, bytes);
    table.exact("indexer key: read", name, read);
  }
}

void indexer_gather(Random& random, Table& table) {
  const std::vector<std::int64_t> seq{3, 4, 255, 256, 257, 1030};
  for (const bool fp4 : {false, true}) {
    std::vector<std::int64_t> kept;
    std::vector<std::int32_t> lens;
    std::int64_t total = 0;
    for (const std::int64_t l : seq) {
      kept.push_back(l / 4 + 1);
      lens.push_back(static_cast<std::int32_t>(l));
      total += l / 4;
    }
    Cache cache = Cache::indexer(random, kept, fp4);
    std::vector<std::uint8_t> want_values, want_scales;
    for (std::size_t r = 0; r < seq.size(); ++r) {
      for (std::int64_t j = 0; j < seq[r] / 4; ++j) {
        const auto request = static_cast<std::int64_t>(r);
        cache.put_indexer(request, j, from_bf16(random.bf16(128)), fp4);
        const ref::Place at = ref::place(cache.table(request), 64, j);
        const auto keep = [&](const auto& row) {
          for (const std::byte b : row.data)
            want_values.push_back(std::to_integer<std::uint8_t>(b));
          for (const std::byte b : row.scale)
            want_scales.push_back(std::to_integer<std::uint8_t>(b));
        };
        const ref::Bytes page = cache.pages().page(at.block);
        fp4 ? keep(ref::indexer_row_fp4(page, 64, at.row))
            : keep(ref::indexer_row(page, 64, at.row));
      }
    }
    Output<std::uint8_t> values(total * (fp4 ? 64 : 128), 0xFF), scales(total * 4, 0xFF);
    device()->gather_indexer_keys({static_cast<std::int64_t>(seq.size()), 4,
                                   fp4 ? cpu::IndexFormat::kMxfp4 : cpu::IndexFormat::kFp8,
                                   lens.data(), cache.op(), cache.op_table(), values.data(),
                                   scales.data()});
    table.exact("indexer keys gathered",
                std::string(fp4 ? "MXFP4" : "fp8") + ", seq 3,4,255,256,257,1030",
                differing(values.copy(), want_values) + differing(scales.copy(), want_scales),
                values.overrun() + scales.overrun());
  }
}

}  // namespace

std::vector<Case> cache_cases() {
  return {{"cache_encode_insert_read", insert_and_read},
          {"cache_gather", gather},
          {"indexer_rows", indexer_rows, true},
          {"indexer_gather", indexer_gather}};
}

}  // namespace warmgate::numerics
