// Contents that go through collectives.
#include <gtest/gtest.h>
#include <signal.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "harness/engine/parallel/rank_processes.h"
#include "harness/engine/parallel/rank_sum.h"
#include "harness/engine/parallel/shared_memory.h"

namespace warmgate::engine {
namespace {

using test::Body;
using test::Outcome;
using test::run_ranks;
using test::same;

template <class T>
std::span<std::byte> bytes_of(std::vector<T>& values) {
  return std::as_writable_bytes(std::span(values));
}

/// Element i of what rank `rank` brings: mixed magnitudes, so that another order gives other sums.
float value_of(std::uint32_t seed, int rank, std::size_t i) {
  std::uint32_t h = seed + static_cast<std::uint32_t>(rank) * 0x9E3779B9u;
  h = (h ^ static_cast<std::uint32_t>(i)) * 0x85EBCA6Bu;
  h = (h ^ h >> 13) * 0xC2B2AE35u;
  // Sign, an exponent of -12..11, all of the fraction.
  return std::bit_cast<float>((h & 0x807FFFFFu) | (115u + (h >> 24) % 24u) << 23);
}

std::uint16_t bf16_of(float value) {  // cut: any bf16 does as input
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
}
float float_of(std::uint16_t value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16);
}

/// The nearest bf16, found by looking at both neighbours.
std::uint16_t nearest_bf16(float value) {
  const std::uint16_t cut = bf16_of(value), next = static_cast<std::uint16_t>(cut + 1);
  const double below = std::fabs(static_cast<double>(value) - float_of(cut));
  const double above = std::fabs(static_cast<double>(value) - float_of(next));
  if (below == above) return cut % 2 == 0 ? cut : next;
  return below < above ? cut : next;
}

std::string difference(std::size_t i, float got, float wanted) {
  char text[96];
  std::snprintf(text, sizeof text, "element %zu: %a instead of %a", i, got, wanted);
  return text;
}

std::string sum_fp32(Collectives& c, std::uint32_t seed, std::size_t count) {
  std::vector<float> mine(count);
  for (std::size_t i = 0; i < count; ++i) mine[i] = value_of(seed, c.rank(), i);
  c.all_reduce("tp", bytes_of(mine), Element::kFp32);
  for (std::size_t i = 0; i < count; ++i) {
    float wanted = value_of(seed, 0, i);
    for (int r = 1; r < c.world(); ++r) wanted += value_of(seed, r, i);
    if (mine[i] != wanted) return difference(i, mine[i], wanted);
  }
  return {};
}

std::string sum_bf16(Collectives& c, std::uint32_t seed, std::size_t count) {
  std::vector<std::uint16_t> mine(count);
  for (std::size_t i = 0; i < count; ++i) mine[i] = bf16_of(value_of(seed, c.rank(), i));
  c.all_reduce("tp", bytes_of(mine), Element::kBf16);
  for (std::size_t i = 0; i < count; ++i) {
    float wanted = float_of(bf16_of(value_of(seed, 0, i)));
    for (int r = 1; r < c.world(); ++r) wanted += float_of(bf16_of(value_of(seed, r, i)));
    if (mine[i] != nearest_bf16(wanted)) return difference(i, float_of(mine[i]), wanted);
  }
  return {};
}

std::string gather(Collectives& c, std::uint32_t seed, std::size_t count) {
  std::vector<float> mine(count), all(count * static_cast<std::size_t>(c.world()), NAN);
  for (std::size_t i = 0; i < count; ++i) mine[i] = value_of(seed, c.rank(), i);
  c.all_gather("tp", std::as_bytes(std::span(mine)), bytes_of(all));
  for (std::size_t i = 0; i < all.size(); ++i) {
    const float wanted = value_of(seed, static_cast<int>(i / count), i % count);
    if (all[i] != wanted) return difference(i, all[i], wanted);
  }
  return {};
}

class Payload : public ::testing::TestWithParam<int> {};

TEST_P(Payload, EveryRankGetsTheSameSumsAndParts) {
  const std::uint32_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  constexpr std::size_t kPiece = shared::kPieceBytes / 4;
  const auto body = [&](Collectives& c) {
    std::uint32_t s = seed;
    for (const std::size_t count :
         {std::size_t{1}, std::size_t{3}, std::size_t{512}, kPiece, 2 * kPiece + 7}) {
      for (const auto operation : {sum_fp32, sum_bf16, gather}) {
        const std::string wrong = operation(c, s += 100, count);
        if (!wrong.empty()) return std::to_string(count) + " values: " + wrong;
      }
    }
    // Operations without contents in between count on.
    if (c.all_reduce("tp", 64) != 15) return std::string("sequence numbers count pieces");
    return gather(c, ++s, 5);
  };
  for (const Outcome& outcome : run_ranks(GetParam(), 20'000, same(GetParam(), body))) {
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.said, "");
  }
}
INSTANTIATE_TEST_SUITE_P(Worlds, Payload, ::testing::Values(1, 2, 4, 8));

TEST(RankSum, KeepsSignsOfZeroAndNaNAndRoundsTiesToEven) {
  const auto sum = [](std::uint16_t a, std::uint16_t b) {
    RankSum s;
    s.assign(Element::kBf16, 2);
    s.add(reinterpret_cast<const std::byte*>(&a));
    s.add(reinterpret_cast<const std::byte*>(&b));
    std::uint16_t out = 0;
    s.round_to(reinterpret_cast<std::byte*>(&out));
    return out;
  };
  EXPECT_EQ(sum(0x8000, 0x8000), 0x8000);  // -0
  EXPECT_EQ(sum(0x3F80, 0x3B80), 0x3F80);  // 1 + 2^-8: a tie, down to even
  EXPECT_EQ(sum(0x3F81, 0x3B80), 0x3F82);  // 1 + 2^-7 + 2^-8: a tie, up to even
  EXPECT_EQ(sum(0x7F80, 0x3F80), 0x7F80);  // infinity
  EXPECT_TRUE(std::isnan(float_of(sum(0x7F80, 0xFF80))));
  EXPECT_TRUE(std::isnan(float_of(sum(0xFFFF, 0x3F80))));  // poison stays poison
  RankSum s;
  EXPECT_THROW(s.assign(Element::kBf16, 3), std::invalid_argument);
  EXPECT_THROW(s.assign(Element::kFp32, 6), std::invalid_argument);
}

TEST(PayloadFailure, SizesThatDiffer) {
  const auto body = [](std::size_t count) {
    return [count](Collectives& c) {
      std::vector<float> values(count, 1);
      c.all_reduce("tp", bytes_of(values), Element::kFp32);
      return std::string();
    };
  };
  // The second differs only behind the first piece.
  for (const std::size_t more : {std::size_t{9}, shared::kPieceBytes}) {
    for (const Outcome& outcome : run_ranks(2, 20'000, {body(8), body(more)})) {
      EXPECT_EQ(outcome.code, 1);
      EXPECT_EQ(outcome.said.rfind("mismatch: ", 0), 0u) << outcome.said;
    }
  }
  for (const Outcome& outcome : run_ranks(1, 100, {[](Collectives& c) {
                                            std::vector<float> values(3);
                                            c.all_gather("tp", std::as_bytes(std::span(values)),
                                                         bytes_of(values).first(8));
                                            return std::string();
                                          }})) {
    EXPECT_EQ(outcome.code, 2) << outcome.said;
  }
}

TEST(PayloadFailure, DeathBetweenPiecesIsNoticed) {
  Body survivor = [](Collectives& c) {
    std::vector<float> values(shared::kPieceBytes, 1);  // four pieces
    c.all_reduce("tp", bytes_of(values), Element::kFp32);
    return std::string();
  };
  auto bodies = same(3, survivor);
  bodies[1] = [](Collectives& c) {
    std::vector<float> values(shared::kPieceBytes / 4, 1);
    // Enters as if it had four pieces, and dies behind the first.
    c.all_reduce("warm", bytes_of(values), Element::kFp32);
    ::raise(SIGKILL);
    return std::string();
  };
  bodies[0] = bodies[2] = [&](Collectives& c) {
    std::vector<float> values(shared::kPieceBytes / 4, 1);
    c.all_reduce("warm", bytes_of(values), Element::kFp32);
    return survivor(c);
  };
  const auto outcomes = run_ranks(3, 60'000, bodies);
  for (const std::size_t rank : {0u, 2u}) {
    EXPECT_EQ(outcomes[rank].code, 1);
    EXPECT_NE(outcomes[rank].said.find("rank 1 failed: it died after 1 collectives"),
              std::string::npos)
        << outcomes[rank].said;
  }
}

TEST(PayloadFailure, TheDeadlineHoldsForContentsToo) {
  const auto outcomes = run_ranks(2, 200, {[](Collectives& c) {
                                    std::vector<float> values(8);
                                    c.all_reduce("tp", bytes_of(values), Element::kFp32);
                                    return std::string();
                                  }});
  EXPECT_EQ(outcomes[0].code, 1);
  EXPECT_NE(outcomes[0].said.find("missing: rank 1 (never seen)"), std::string::npos);
}

}  // namespace
}  // namespace warmgate::engine
