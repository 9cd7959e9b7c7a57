#include <random>

#include "kernels/jit/kernel_table.h"
#include "kernels/jit/test_keys.h"

namespace warmgate::jit {
namespace {

using ::testing::HasSubstr;

TEST(Key, TextAndBack) {
  for (const Key& key : testing::all_keys({0, 4, 128})) EXPECT_EQ(parse_key(key.text()), key);
  const Key none = parse_key("Kernel{}");
  EXPECT_EQ(none.text(), "Kernel{}");
  EXPECT_TRUE(none.fields.empty());
  EXPECT_EQ(parse_key("K{A=-1,b=TF}").fields[0].second, "-1");
}

TEST(Key, HostileText) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "expected Kernel{"},
      {"K", "expected Kernel{"},
      {"K{A=1", "expected Kernel{"},
      {"K{A=1}x", "expected Kernel{"},
      {"{A=1}", "not an identifier"},
      {"9K{A=1}", "not an identifier"},
      {"K {A=1}", "not an identifier"},
      {"K{A}", "has no '='"},
      {"K{=1}", "not an identifier"},
      {"K{A=}", "neither a number nor a word"},
      {"K{A=-}", "neither a number nor a word"},
      {"K{A=1,}", "a comma without a field"},
      {"K{,A=1}", "has no '='"},
      {"K{A=1,A=2}", "twice"},
      {"K{A=1;system(0)}", "neither a number nor a word"},
      {"K{A=1>,B=2}", "neither a number nor a word"},
      {"K{A={B=1}}", "neither a number nor a word"},
      {std::string("K{A=1\0}", 7), "neither a number nor a word"},
      {"K{" + std::string(5000, 'A') + "=1}", "longer than 4096"}};
  for (const auto& [text, why] : cases) {
    try {
      parse_key(text);
      ADD_FAILURE() << "accepted: " << text;
    } catch (const std::runtime_error& error) {
      EXPECT_THAT(error.what(), HasSubstr(why)) << text;
    }
  }
}

TEST(Key, RandomBytesNeitherCrashNorSlipThrough) {
  std::mt19937 random(20260727);
  const std::string good = testing::chunk_key("div16", "any", 4, "T").text();
  for (int i = 0; i < 20000; ++i) {
    std::string text = good;
    for (int edits = 1 + static_cast<int>(random() % 3); edits > 0; --edits) {
      const auto at = random() % text.size();
      if (random() % 4 == 0)
        text.erase(at, 1 + random() % 9);
      else
        text[at] = static_cast<char>(random() % 256);
      if (text.empty()) text = "{";
    }
    try {
      const Key key = parse_key(text);
      EXPECT_EQ(key.text(), text);
    } catch (const std::runtime_error&) {
    }
  }
}

TEST(KernelTable, RefusesKeysThatAreNotTheKernels) {
  const auto refuse = [](const std::string& text, const std::string& why) {
    try {
      const Key key = parse_key(text);
      constants_of(key, key.kernel);
      ADD_FAILURE() << "accepted: " << text;
    } catch (const std::runtime_error& error) {
      EXPECT_THAT(error.what(), HasSubstr(why));
    }
  };
  refuse("Nope{A=1}", "not a key of kernel");
  refuse("ComputePrefillMetadata{}", "has 0 fields, the kernel has 1");
  refuse("ComputePrefillMetadata{BLOCKSIZE=8}", "expected 'BLOCK_SIZE'");
  refuse("ComputePrefillMetadata{BLOCK_SIZE=eight}", "not a decimal 32-bit integer");
  refuse("ComputePrefillMetadata{BLOCK_SIZE=99999999999}", "not a decimal 32-bit integer");
  refuse("ComputePrefillMetadata{BLOCK_SIZE=8x}", "not a decimal 32-bit integer");
  refuse(testing::combine_key(4, 512, 512, "TTT").text(), "not 4 letters T or F");
  refuse(testing::combine_key(4, 512, 512, "TTXT").text(), "not 4 letters T or F");
  refuse(testing::chunk_key("two", "any", 4, "T").text(), "allowed are one, div16, any");
}

// The three lists that name a kernel's constants: the table, the template, the host's members.
TEST(KernelTable, FieldsAreTheTemplateArgumentsOfTheBody) {
  for (const KernelSpec& spec : kernels()) {
    const std::string source(spec.source);
    const auto kernel = source.find("WG_KERNEL " + std::string(spec.name) + "(");
    ASSERT_NE(kernel, std::string::npos) << spec.name;
    const auto begin = source.rfind("WG_CONSTANTS(", kernel);
    const std::string list = source.substr(begin, kernel - begin);
    std::size_t at = 0;
    int arguments = 0;
    for (const FieldSpec& field : spec.fields) {
      arguments += field.kind == FieldKind::kAlignment ? field.width : 1;
      if (field.kind == FieldKind::kAlignment) continue;
      std::string name(field.name);
      std::transform(name.begin(), name.end(), name.begin(), ::toupper);
      at = list.find("int " + name, at);
      EXPECT_NE(at, std::string::npos) << spec.name << " " << name;
    }
    EXPECT_EQ(std::count(list.begin(), list.end(), ','), arguments - 1) << spec.name;
    EXPECT_LE(static_cast<std::size_t>(arguments), Constants{}.size());
  }
  EXPECT_EQ(name_expression(testing::chunk_key("one", "any", 4, "F", "2,4,8")),
            "BuildPrefillChunkMetadata<1,0,2,4,8,1024,4,false>");
  EXPECT_EQ(name_expression(testing::combine_key(128, 8192, 8192, "TFFT")),
            "CombineTopkSwaIndices<128,8192,8192,128,true,false,false,true>");
}

}  // namespace
}  // namespace warmgate::jit
