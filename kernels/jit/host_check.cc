// A key's kernel on small inputs at the boundaries of its arguments, compared with the reference:
// by its body on the host, which needs no compiler, or by whoever else launches it.
#include <algorithm>
#include <numeric>
#include <optional>

#include "kernels/jit/host_kernels.h"
#include "kernels/jit/jit.h"
#include "kernels/jit/kernel_table.h"
#include "kernels/reference/metadata.h"

namespace warmgate::jit {
namespace {

using reference::Request;
using Ints = std::vector<std::int32_t>;

constexpr std::int32_t kPoison = -1234567891;
constexpr std::int32_t kMaxPosition = 1 << 20;

[[noreturn]] void differs(const char* output, std::size_t at, std::int64_t seen,
                          std::int64_t expected) {
  const bool unwritten = seen == kPoison;
  throw KernelFault(unwritten ? "unwritten" : "wrong_result",
                    std::string(output) + "[" + std::to_string(at) + "] is " +
                        (unwritten ? "never written" : std::to_string(seen)) + ", expected " +
                        std::to_string(expected),
                    std::source_location::current());
}

void expect_equal(const char* output, const std::int32_t* seen,
                  const std::vector<std::int64_t>& expected) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (seen[i] != expected[i]) differs(output, i, seen[i], expected[i]);
  }
}

InBuffer in(const Ints& values, bool aligned = true) {
  return {values.data(), static_cast<std::int64_t>(values.size()), aligned ? 0 : 1};
}
OutBuffer out(Ints& values) { return {values.data(), static_cast<std::int64_t>(values.size())}; }

Ints start_locs(const std::vector<Request>& requests) {
  Ints out_locs{0};
  for (const Request& r : requests) {
    out_locs.push_back(out_locs.back() + static_cast<std::int32_t>(r.query_len));
  }
  return out_locs;
}
Ints seq_lens(const std::vector<Request>& requests) {
  Ints lens;
  for (const Request& r : requests) lens.push_back(static_cast<std::int32_t>(r.seq_len));
  return lens;
}

void check_compute_prefill(Launcher& launcher, const Key& key, const Constants& c) {
  const std::int32_t block = std::clamp(c[0], 1, 2048), window = 128;
  static constexpr std::int32_t prefixes[] = {0, 1, 126, 127, 128, kMaxPosition - 64};
  for (const auto& [prefills, decodes] : {std::pair{block, 0}, {block / 2 + 1, 3}}) {
    std::vector<Request> requests(static_cast<std::size_t>(decodes), Request{1, 100});
    for (std::int32_t i = 0; i < prefills; ++i) {
      const std::int32_t query = 1 + i % 17;
      requests.push_back({query, prefixes[i % 6] + query});
    }
    const Ints locs = start_locs(requests), lens = seq_lens(requests);
    Ints gather(static_cast<std::size_t>(prefills), kPoison);
    launcher.run(key,
                 ComputePrefillLaunch{out(gather), in(locs), in(lens), prefills, decodes, window});
    requests.erase(requests.begin(), requests.begin() + decodes);
    expect_equal("gather_lens", gather.data(), reference::gather_lens(requests, window));
  }
}

/// Values of an integer argument that fit its class.
Ints values_of_class(std::int32_t declared) {
  if (declared == 1) return {1};
  if (declared == 16) return {0, 16, 48};
  return {2, 17, 55};
}

void check_build_chunk(Launcher& launcher, const Key& key, const Constants& c) {
  const std::int32_t r = std::clamp(c[6], 1, 4096);
  const bool aligned = c[7] != 0;
  std::vector<Request> chunk = {{1, 1},
                                {2, std::max(2, r)},
                                {15, std::max(15, r + 1)},
                                {16, std::max(16, 2 * r)},
                                {17, 2 * r + 16},
                                {4, 4}};
  const Ints locs = start_locs(chunk), lens = seq_lens(chunk);
  std::vector<std::pair<std::int32_t, std::int32_t>> slices;
  for (const auto start : values_of_class(c[0])) {
    for (const auto stop : values_of_class(c[1])) {
      if (start < stop) slices.emplace_back(start, stop);
    }
  }
  // No slice has these two classes (1 to 1, say): an empty one shows that the code survives.
  if (slices.empty()) slices.emplace_back(1, 1);
  const auto total = static_cast<std::size_t>(std::accumulate(lens.begin(), lens.end(), 0));
  for (const auto& [start, stop] : slices) {
    const auto rows = static_cast<std::size_t>(stop - start);
    Ints starts(rows, kPoison), ends(rows, kPoison), owners(total, kPoison);
    launcher.run(key,
                 BuildChunkLaunch{out(starts), out(ends), out(owners), in(locs), in(lens, aligned),
                                  start, stop, static_cast<std::int32_t>(chunk.size())});
    const auto expected = reference::chunk_metadata(chunk, r, start, stop, {c[2], c[3], c[4]});
    expect_equal("key_starts", starts.data(), expected.key_starts);
    expect_equal("key_ends", ends.data(), expected.key_ends);
    expect_equal("key_requests", owners.data(), expected.key_requests);
  }
}

void check_combine(Launcher& launcher, const Key& key, const Constants& c) {
  const std::int32_t r = std::clamp(c[0], 1, 4096), top_k = std::clamp(c[1], 0, 65536);
  const std::int32_t window = c[3];
  // One entry short of, at, and past: the first entry, a full window, a full list of entries.
  const auto full = std::clamp<std::int64_t>(std::int64_t{r} * top_k, 2, kMaxPosition);
  std::vector<Request> chunk = {
      {1, 1}, {3, std::max(3, r + 1)}, {3, std::max(3, window + 1)}, {top_k > 2048 ? 1 : 2, full}};
  if (full < kMaxPosition) chunk.push_back({1, kMaxPosition});
  const auto gathered = reference::gather_lens(chunk, window);
  const Ints locs = start_locs(chunk), lens = seq_lens(chunk);
  const Ints gather(gathered.begin(), gathered.end());
  const std::int32_t N = kMaxPosition / r, M = N + 8192 + 128;
  const auto tokens = static_cast<std::size_t>(locs.back());
  const std::int32_t topk_stride = (top_k + 3) / 4 * 4;
  const std::int32_t combined_stride = top_k + std::max(window, 0);
  Ints topk(tokens * static_cast<std::size_t>(topk_stride));
  for (std::size_t i = 0; i < topk.size(); ++i) topk[i] = static_cast<std::int32_t>(i * 37 & 8191);
  Ints indices(tokens * static_cast<std::size_t>(combined_stride), kPoison),
      counts(tokens, kPoison);
  launcher.run(
      key, CombineLaunch{out(indices), out(counts), in(topk, c[4] != 0), in(locs, c[5] != 0),
                         in(lens, c[6] != 0), in(gather, c[7] != 0), combined_stride, topk_stride,
                         M, N, static_cast<std::int32_t>(chunk.size()), 2});
  std::vector<std::vector<std::int64_t>> topk_rows;  // as far as the reference reads them
  for (const Request& request : chunk) {
    const auto used = std::min<std::int64_t>(top_k, request.seq_len / r);
    for (std::int64_t i = 0; i < request.query_len; ++i) {
      const auto begin = topk.begin() + static_cast<std::ptrdiff_t>(topk_rows.size()) * topk_stride;
      topk_rows.emplace_back(begin, begin + used);
    }
  }
  const auto rows = reference::combined_indices(chunk, gathered, topk_rows, r, c[1], window, M, N);
  for (std::size_t t = 0; t < tokens; ++t) {
    expect_equal("combined_lens", &counts[t], {static_cast<std::int64_t>(rows[t].size())});
    expect_equal("combined_indices", indices.data() + t * static_cast<std::size_t>(combined_stride),
                 rows[t]);
  }
}

/// The path of a body inside the source tree.
std::string short_path(const char* file) {
  const std::string path(file);
  const auto at = path.rfind("kernels/jit/");
  return at == std::string::npos ? path : path.substr(at);
}

}  // namespace

HostCheck check_on_host(const Key& key) {
  class OnHost final : public Launcher {
   public:
    void run(const Key& k, const ComputePrefillLaunch& launch) override { run_on_host(k, launch); }
    void run(const Key& k, const BuildChunkLaunch& launch) override { run_on_host(k, launch); }
    void run(const Key& k, const CombineLaunch& launch) override { run_on_host(k, launch); }
  } on_host;
  return check_with(on_host, key);
}

HostCheck check_with(Launcher& launcher, const Key& key) {
  HostCheck check;
  try {
    const Constants constants = constants_of(key, key.kernel);
    if (key.kernel == kComputePrefillMetadata) check_compute_prefill(launcher, key, constants);
    if (key.kernel == kBuildPrefillChunkMetadata) check_build_chunk(launcher, key, constants);
    if (key.kernel == kCombineTopkSwaIndices) check_combine(launcher, key, constants);
    check.ok = true;
  } catch (const KernelFault& fault) {
    check.fault = fault.kind;
    check.message = fault.what();
    const bool of_result =
        fault.kind == "unwritten" || fault.kind == "wrong_result" || fault.kind == "device_fault";
    check.file = of_result ? find_kernel(key.kernel)->file : short_path(fault.location.file_name());
    check.line = of_result ? 0 : static_cast<int>(fault.location.line());
    std::string text = source_line(check.file, check.line);
    // What ends a statement in C++ is only noise in a sentence.
    text.resize(text.find_last_not_of(" ;{\r") + 1);
    if (!text.empty()) check.message += " in: " + text;
  } catch (const std::runtime_error& error) {
    check.fault = "bad_key";
    check.message = error.what();
  }
  return check;
}

}  // namespace warmgate::jit
