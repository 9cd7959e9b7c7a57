// Integer classes and alignment are not just names in a key: they change the code that is
// generated.
#include <cctype>

#include "kernels/jit/device_program.h"
#include "kernels/jit/test_keys.h"

namespace warmgate::jit {
namespace {

class DeviceCode : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!nvrtc().available) GTEST_SKIP() << nvrtc().why_not;
    file_ = find_nvrtc();
    nvrtc_ = std::make_unique<Nvrtc>(file_.path);
  }
  /// PTX of one key, without the kernel's mangled name, which carries the template arguments
  /// anyway.
  std::string ptx(const Key& key) {
    const KernelSpec& spec = *find_kernel(key.kernel);
    std::string text =
        nvrtc_->ptx(device_program(spec, {key}, nvrtc_options(Mode::kStrict, "sm_90a", file_)));
    EXPECT_NE(text, "") << key.text();
    for (std::size_t at; (at = text.find(key.kernel)) != std::string::npos;) {
      const auto is_name = [&](std::size_t i) {
        return i < text.size() &&
               (std::isalnum(static_cast<unsigned char>(text[i])) != 0 || text[i] == '_');
      };
      std::size_t begin = at, end = at;
      while (begin > 0 && is_name(begin - 1)) --begin;
      while (is_name(end)) ++end;
      text.replace(begin, end - begin, "K");
    }
    return text;
  }
  static std::size_t count(const std::string& text, const std::string& what) {
    std::size_t n = 0;
    for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
    return n;
  }
  NvrtcFile file_;
  std::unique_ptr<Nvrtc> nvrtc_;
};

TEST_F(DeviceCode, IntegerClassesChangeTheCode) {
  const auto code = [&](const char* start, const char* stop) {
    return ptx(testing::chunk_key(start, stop, 4, "T"));
  };
  const std::set<std::string> starts = {code("any", "any"), code("one", "any"),
                                        code("div16", "any")};
  EXPECT_EQ(starts.size(), 3u);
  const std::set<std::string> stops = {code("any", "any"), code("any", "one"),
                                       code("any", "div16")};
  EXPECT_EQ(stops.size(), 3u);
  EXPECT_EQ(count(code("div16", "any"), "-16;"), count(code("any", "any"), "-16;") + 1);
}

TEST_F(DeviceCode, AlignmentTurnsIntoWideLoads) {
  const std::string wide = ".v4.u32";
  EXPECT_GT(count(ptx(testing::chunk_key("any", "any", 4, "T")), wide), 0u);
  EXPECT_EQ(count(ptx(testing::chunk_key("any", "any", 4, "F")), wide), 0u);
  std::set<std::string> codes;
  std::size_t loads[2] = {0, 0};
  for (const char* alignment : {"TTTT", "FTTT", "TFTT", "TTFT", "TTTF", "FFFF"}) {
    const std::string code = ptx(testing::combine_key(4, 512, 512, alignment));
    codes.insert(code);
    if (std::string(alignment) == "TTTT") loads[0] = count(code, wide);
    if (std::string(alignment) == "FFFF") loads[1] = count(code, wide);
  }
  EXPECT_EQ(codes.size(), 6u);
  EXPECT_GT(loads[0], 3u);
  EXPECT_EQ(loads[1], 0u);
}

TEST_F(DeviceCode, ConstantsChangeTheCode) {
  std::set<std::string> codes;
  for (const int ratio : {1, 4, 128})
    codes.insert(ptx(testing::chunk_key("any", "any", ratio, "T")));
  for (const char* dcp : {"1,2,1", "0,2,1", "0,2,4"})
    codes.insert(ptx(testing::chunk_key("any", "any", 4, "T", dcp)));
  EXPECT_EQ(codes.size(), 6u);
  EXPECT_NE(ptx(testing::compute_key(8)), ptx(testing::compute_key(16)));
  EXPECT_NE(ptx(testing::combine_key(4, 512, 512, "TTTT", 128)),
            ptx(testing::combine_key(4, 512, 512, "TTTT", 64)));
}

TEST_F(DeviceCode, AddressesDependOnEverything) {
  Addresses addresses(file_);
  const KernelSpec& spec = *find_kernel(kComputePrefillMetadata);
  NvrtcFile newer = file_;
  newer.identity += "x";
  KernelSpec edited = spec;
  const std::string other_source = std::string(spec.source) + "\n";
  edited.source = other_source;
  const std::set<std::string> all = {
      addresses.of(spec, "a", Mode::kStrict, "sm_90a"),
      addresses.of(spec, "b", Mode::kStrict, "sm_90a"),
      addresses.of(spec, "a", Mode::kLenient, "sm_90a"),
      addresses.of(spec, "a", Mode::kStrict, "sm_80"),
      addresses.of(*find_kernel(kCombineTopkSwaIndices), "a", Mode::kStrict, "sm_90a"),
      Addresses(newer).of(spec, "a", Mode::kStrict, "sm_90a"),
      Addresses(file_).of(edited, "a", Mode::kStrict, "sm_90a")};
  EXPECT_EQ(all.size(), 7u);
  EXPECT_EQ(addresses.of(spec, "a", Mode::kStrict, "sm_90a"),
            Addresses(file_).of(spec, "a", Mode::kStrict, "sm_90a"));
}

}  // namespace
}  // namespace warmgate::jit
