// Calls by name, captures, modules' symbols, mappings, the interface written down.
#include <gmock/gmock.h>

#include <cstring>
#include <random>

#include "harness/probe/calls.h"
#include "harness/probe/captures.h"
#include "harness/probe/cubin.h"
#include "harness/probe/cupti_abi.h"
#include "harness/probe/mapped.h"

#if __has_include(<cupti.h>)
#include <cupti.h>
#endif
#include <elf.h>

namespace warmgate::probe {
namespace {

#if __has_include(<cupti.h>)
static_assert(sizeof(cupti::CallbackData) == sizeof(CUpti_CallbackData));
static_assert(offsetof(cupti::CallbackData, symbol) == offsetof(CUpti_CallbackData, symbolName));
static_assert(offsetof(cupti::CallbackData, correlation_data) ==
              offsetof(CUpti_CallbackData, correlationData));
static_assert(sizeof(cupti::ResourceData) == sizeof(CUpti_ResourceData));
static_assert(sizeof(cupti::ModuleData) == sizeof(CUpti_ModuleResourceData));
static_assert(offsetof(cupti::ModuleData, cubin) == offsetof(CUpti_ModuleResourceData, pCubin));
static_assert(int{cupti::kModuleLoaded} == int{CUPTI_CBID_RESOURCE_MODULE_LOADED});
static_assert(int{cupti::kContextCreated} == int{CUPTI_CBID_RESOURCE_CONTEXT_CREATED});
static_assert(int{cupti::kDriverApi} == int{CUPTI_CB_DOMAIN_DRIVER_API});
static_assert(int{cupti::kResource} == int{CUPTI_CB_DOMAIN_RESOURCE});
static_assert(int{cupti::kMultipleSubscribers} ==
              int{CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED});
// Words of the arguments that calls.h names.
static_assert(offsetof(cuModuleLoadDataEx_params, image) == 8);
static_assert(offsetof(cuLibraryLoadData_params, code) == 8);
static_assert(offsetof(cuMemAlloc_v2_params, bytesize) == 8);
static_assert(offsetof(cuMemAllocFromPoolAsync_params, bytesize) == 8);
static_assert(offsetof(cuMemCreate_params, size) == 8);
static_assert(offsetof(cuStreamBeginCapture_v2_params, mode) == 8);
static_assert(offsetof(cuStreamEndCapture_params, phGraph) == 8);
static_assert(offsetof(cuGraphInstantiateWithParams_params, hGraph) == 8);
static_assert(offsetof(cuLaunchKernelEx_params, f) == 8);
static_assert(offsetof(cuLaunchKernelEx_params, kernelParams) == 16);
static_assert(offsetof(cuLaunchKernel_params, kernelParams) == 48);
#endif

TEST(Calls, ByNameWithAndWithoutThePerThreadSuffix) {
  EXPECT_EQ(call_named("cuMemAllocAsync_ptsz"), Call::kAllocAsync);
  EXPECT_EQ(call_named("cuMemAllocAsync"), Call::kAllocAsync);
  EXPECT_EQ(call_named("cuMemAllocHost_v2"), Call::kNone) << "memory of the host";
  EXPECT_EQ(call_named(""), Call::kNone);
  EXPECT_EQ(call_named("_ptsz"), Call::kNone);
}

TEST(Captures, FullOnesAreNotFollowedAndComeBack) {
  Captures captures;
  for (std::uint64_t i = 0; i < 64; ++i)
    EXPECT_EQ(captures.begin(i, 1, CaptureMode::kThread, 0), i + 1);
  EXPECT_EQ(captures.begin(64, 1, CaptureMode::kThread, 0), 0u);
  EXPECT_EQ(captures.end(64).number, 0u);
  EXPECT_EQ(captures.end(3).number, 4u);
  EXPECT_EQ(captures.begin(64, 1, CaptureMode::kThread, 0), 65u);
  for (std::uint64_t i = 0; i < 65; ++i) captures.end(i);
  EXPECT_FALSE(captures.any());
}

TEST(Mapped, ProgramHeapAndLibrary) {
  static const int mine = 0;
  const std::string heap(100, 'x');
  EXPECT_EQ(object_with(&mine), "/proc/self/exe");
  EXPECT_EQ(object_with(heap.data()), "");
  EXPECT_EQ(object_with(nullptr), "");
  EXPECT_THAT(object_with(reinterpret_cast<const void*>(&std::strtol)),
              ::testing::HasSubstr(".so"));
}

// The smallest image that has what is read: a header, a symbol table and its strings.
std::string image_with(const std::vector<std::pair<std::string, bool>>& functions) {
  std::string strings(1, '\0');
  std::vector<Elf64_Sym> symbols(1);
  for (const auto& [name, entry] : functions) {
    Elf64_Sym symbol{};
    symbol.st_name = static_cast<Elf64_Word>(strings.size());
    symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
    symbol.st_other = entry ? 0x10 : 0;
    symbols.push_back(symbol);
    strings += name + '\0';
  }
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 2;
  header.e_shoff = sizeof header;
  Elf64_Shdr sections[2] = {};
  sections[0].sh_type = SHT_SYMTAB;
  sections[0].sh_offset = sizeof header + sizeof sections;
  sections[0].sh_size = symbols.size() * sizeof(Elf64_Sym);
  sections[0].sh_link = 1;
  sections[1].sh_type = SHT_STRTAB;
  sections[1].sh_offset = sections[0].sh_offset + sections[0].sh_size;
  sections[1].sh_size = strings.size();
  std::string out(reinterpret_cast<const char*>(&header), sizeof header);
  out.append(reinterpret_cast<const char*>(sections), sizeof sections);
  out.append(reinterpret_cast<const char*>(symbols.data()), sections[0].sh_size);
  return out + strings;
}

TEST(Cubin, KernelsAreItsEntryPoints) {
  const std::string image = image_with({{"_Z6kernelPf", true}, {"helper", false}, {"two", true}});
  const Cubin cubin = read_cubin(image.data(), image.size(), 1);
  EXPECT_TRUE(cubin.is_elf);
  EXPECT_EQ(cubin.kernels, 2u);
  EXPECT_THAT(cubin.names, ::testing::ElementsAre("_Z6kernelPf"));
  EXPECT_EQ(cubin.hash, read_cubin(image.data(), image.size()).hash);
  std::string other = image;
  for (const std::size_t at : {std::size_t{0}, image.size() / 2, image.size() - 1}) {
    other = image;
    other[at] = static_cast<char>(other[at] ^ 1);
    EXPECT_NE(read_cubin(other.data(), other.size()).hash, cubin.hash) << at;
  }
  EXPECT_FALSE(read_cubin("PTX text", 8).is_elf);
  EXPECT_EQ(read_cubin(nullptr, 8).hash, "");
  EXPECT_EQ(read_cubin("x", 0).bytes, 0u);
}

// Run under address sanitizer, this is what keeps a damaged image from being read past its end.
TEST(Cubin, DamagedImagesAreReadNoFurtherThanTheyGo) {
  const std::string image = image_with({{"one", true}, {"two", true}, {"three", true}});
  std::mt19937 random(20261130);
  for (int round = 0; round < 3000; ++round) {
    std::vector<char> damaged(
        image.begin(), image.begin() + static_cast<std::ptrdiff_t>(1 + random() % image.size()));
    for (int i = 0; i < 4; ++i) damaged[random() % damaged.size()] = static_cast<char>(random());
    const Cubin cubin = read_cubin(damaged.data(), damaged.size());
    EXPECT_EQ(cubin.bytes, damaged.size());
    EXPECT_LE(cubin.names.size(), cubin.kernels);
  }
}

}  // namespace
}  // namespace warmgate::probe
