// Which kernel a CUDA core dump holds: a dump built here by the written layout, and one of an H200.
#include "harness/target/hang/cuda_core.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <sstream>

#include "harness/target/test_support.h"

namespace warmgate::target {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;

constexpr std::uint32_t kImage = 0x80000007u, kGrids = 0x8000000cu;

std::string as_bytes(const void* at, std::size_t size) {
  return {static_cast<const char*>(at), size};
}

struct Section {
  std::uint32_t type = 0;
  std::string bytes;
  std::uint32_t link = 0, info = 0;
  std::uint64_t entry = 0;
};

std::string elf_of(const std::vector<Section>& sections) {
  std::string body;
  std::vector<Elf64_Shdr> table(1);
  for (const Section& each : sections) {
    Elf64_Shdr row{};
    row.sh_type = each.type;
    row.sh_offset = sizeof(Elf64_Ehdr) + body.size();
    row.sh_size = each.bytes.size();
    row.sh_link = each.link;
    row.sh_info = each.info;
    row.sh_entsize = each.entry;
    table.push_back(row);
    body += each.bytes;
  }
  Elf64_Ehdr head{};
  std::memcpy(head.e_ident, ELFMAG, SELFMAG);
  head.e_ident[EI_CLASS] = ELFCLASS64;
  head.e_shentsize = sizeof(Elf64_Shdr);
  head.e_shnum = static_cast<std::uint16_t>(table.size());
  head.e_shoff = sizeof head + body.size();
  return as_bytes(&head, sizeof head) + body +
         as_bytes(table.data(), table.size() * sizeof(Elf64_Shdr));
}

std::string image_of(const std::string& kernel, std::uint64_t address) {
  Elf64_Sym symbol{};
  symbol.st_name = 1;
  symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
  symbol.st_value = address;
  symbol.st_size = 0x100;
  return elf_of({{SHT_STRTAB, std::string(1, '\0') + kernel + std::string(1, '\0')},
                 {SHT_SYMTAB, as_bytes(&symbol, sizeof symbol), 1, 0, sizeof symbol}});
}

std::string grid_of(std::uint64_t entry, std::uint32_t blocks) {
  std::string row(136, '\0');  // longer than what is read: drivers append
  std::memcpy(row.data() + 24, &entry, 8);
  std::memcpy(row.data() + 72, &blocks, 4);
  return row;
}

std::vector<std::string> names(const std::string& dump) {
  const auto found = kernels_of_core(dump);
  if (!found) return {"no dump"};
  std::vector<std::string> out;
  for (const RunningKernel& kernel : *found) out.push_back(kernel.name);
  return out;
}

TEST(CudaCore, NamesTheKernelsThatRan) {
  const std::string dump = elf_of({{kImage, image_of("first", 0x7000)},
                                   {kImage, image_of("second", 0x9000)},
                                   {kGrids, grid_of(0x9000, 3) + grid_of(0x70f0, 4), 0, 1, 136},
                                   {kGrids, grid_of(0x1, 5), 0, 2, 136}});
  EXPECT_THAT(names(dump), ElementsAre("second", "first", ""));
  const auto kernels = kernels_of_core(dump);
  EXPECT_EQ(kernels->at(0).grid[0], 3u);
  EXPECT_EQ(kernels->at(0).device, 1);
  EXPECT_EQ(kernels->at(2).device, 2);
}

TEST(CudaCore, OneOfAnH200) {
  const fs::path file =
      fs::path(std::getenv("WARMGATE_SOURCE_DIR")) / "fixtures/probe/core/spins-for-ever.core";
  const auto bytes = whole_core(file);
  ASSERT_TRUE(bytes);
  EXPECT_THAT(names(*bytes), ElementsAre("_Z14spins_for_everPVi"));
  EXPECT_THAT(kernels_of_core(*bytes)->at(0).grid, ElementsAre(2u, 1u, 1u));
  EXPECT_THAT(kernels_of_core(*bytes)->at(0).block, ElementsAre(64u, 1u, 1u));
}

TEST(CudaCore, HostileBytesAreNoDump) {
  const std::string dump =
      elf_of({{kImage, image_of("first", 0x7000)}, {kGrids, grid_of(0x7000, 3), 0, 0, 136}});
  for (std::size_t size = 0; size < dump.size(); ++size)
    EXPECT_THAT(names(dump.substr(0, size)), ElementsAre("no dump")) << size;
  for (std::size_t at = 0; at < dump.size(); ++at) {
    for (const char value : {'\x00', '\x7f', '\xff'}) {
      std::string broken = dump;
      broken[at] = value;
      (void)kernels_of_core(broken);  // the sanitizers watch
    }
  }
  EXPECT_THAT(names(elf_of({{kImage, image_of("first", 0x7000)}})), ElementsAre("no dump"));
  EXPECT_THAT(names(elf_of({{kGrids, grid_of(0x7000, 3), 0, 0, 0}})), ElementsAre());
}

TEST(CudaCore, APipeThatNobodyReadsIsNoReasonToWait) {
  const testing::TempDir dir;
  const fs::path pipe = dir.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_FALSE(ask_for_core(pipe));
  EXPECT_FALSE(ask_for_core(dir.path() / "none"));
  EXPECT_FALSE(whole_core(dir.path() / "none"));
}

}  // namespace
}  // namespace warmgate::target
