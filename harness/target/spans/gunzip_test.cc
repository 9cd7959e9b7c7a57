#include "harness/target/spans/gunzip.h"

#include <gtest/gtest.h>

#include <string>

namespace warmgate::target {
namespace {

// python3: gzip.compress(b"spans " * 50, mtime=0)
constexpr unsigned char kPacked[] = {0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03,
                                     0x2b, 0x2e, 0x48, 0xcc, 0x2b, 0x56, 0x28, 0x1e, 0x25, 0x89,
                                     0x20, 0x01, 0x74, 0x71, 0x88, 0xfb, 0x2c, 0x01, 0x00, 0x00};
const std::string packed(reinterpret_cast<const char*>(kPacked), sizeof kPacked);

std::string text() {
  std::string out;
  for (int i = 0; i < 50; ++i) out += "spans ";
  return out;
}

TEST(Gunzip, WhatPythonPacks) {
  std::string out = "something from before";
  EXPECT_EQ(gunzip(packed, 4096, out), Gunzip::kDone);
  EXPECT_EQ(out, text());
  EXPECT_EQ(gunzip(packed, 300, out), Gunzip::kDone) << "exactly as much as is allowed";
  EXPECT_EQ(gunzip(packed, 299, out), Gunzip::kTooLarge);
}

TEST(Gunzip, AHeaderWithEveryField) {
  std::string named = packed.substr(0, 10);
  named[3] = 4 | 8 | 16 | 2;
  named += std::string("\2\0xy", 4) + std::string("name\0", 5) + std::string("why\0", 4) + "cc";
  std::string out;
  EXPECT_EQ(gunzip(named + packed.substr(10), 4096, out), Gunzip::kDone);
  EXPECT_EQ(out, text());
}

TEST(Gunzip, WhatIsCutOrChangedIsBroken) {
  std::string out;
  for (std::size_t size = 0; size < packed.size(); ++size) {
    EXPECT_EQ(gunzip(packed.substr(0, size), 4096, out), Gunzip::kBroken) << size;
  }
  EXPECT_EQ(gunzip(packed + "x", 4096, out), Gunzip::kBroken);
  for (std::size_t i = 0; i < packed.size(); ++i) {
    for (const unsigned bit : {0u, 3u, 7u}) {
      std::string changed = packed;
      changed[i] = static_cast<char>(changed[i] ^ (1 << bit));
      // Time, level and system of the header mean nothing.
      if (gunzip(changed, 4096, out) == Gunzip::kDone) {
        EXPECT_EQ(out, text()) << i;
      }
    }
  }
}

}  // namespace
}  // namespace warmgate::target
