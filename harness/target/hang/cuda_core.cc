#include "harness/target/hang/cuda_core.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "harness/target/fd.h"
#include "harness/target/hang/regular_file.h"

namespace warmgate::target {
namespace {

constexpr std::uint32_t kRelocatedImage = 0x80000000u + 7, kGridTable = 0x80000000u + 12;
constexpr std::size_t kMostKernels = 64;
constexpr std::uintmax_t kMostBytes = std::uintmax_t{1} << 30;

// CudbgGridTableEntry up to the block's dimensions; later drivers append to it.
struct GridEntry {
  std::uint64_t id, context, function, entry, module, parent, parameters;
  std::uint32_t kernel_type, origin, status, registers;
  std::uint32_t grid[3], block[3];
};
static_assert(sizeof(GridEntry) == 96);

template <typename T>
std::optional<T> read_at(std::string_view bytes, std::uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T out;
  std::memcpy(&out, bytes.data() + offset, sizeof out);
  return out;
}

std::string_view cut(std::string_view bytes, std::uint64_t offset, std::uint64_t size) {
  if (offset > bytes.size()) return {};
  return bytes.substr(offset, size);
}

// The sections of an ELF of 64 bits; nullopt if it is none or its table is not all there.
std::optional<std::vector<Elf64_Shdr>> sections_of(std::string_view bytes) {
  const auto header = read_at<Elf64_Ehdr>(bytes, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
      header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_shentsize != sizeof(Elf64_Shdr))
    return std::nullopt;
  std::uint64_t count = header->e_shnum;
  if (count == 0 && header->e_shoff != 0) {  // 65,280 and more are told in the first section
    const auto first = read_at<Elf64_Shdr>(bytes, header->e_shoff);
    if (!first) return std::nullopt;
    count = first->sh_size;
  }
  if (header->e_shoff > bytes.size() ||
      count > (bytes.size() - header->e_shoff) / sizeof(Elf64_Shdr))
    return std::nullopt;
  std::vector<Elf64_Shdr> out(count);
  if (count > 0)
    std::memcpy(out.data(), bytes.data() + header->e_shoff, count * sizeof(Elf64_Shdr));
  return out;
}

// The function of `image` whose code begins at, or holds, this address.
std::string function_at(std::string_view image, std::uint64_t address) {
  const auto sections = sections_of(image);
  if (!sections) return "";
  for (const Elf64_Shdr& table : *sections) {
    if (table.sh_type != SHT_SYMTAB || table.sh_link >= sections->size()) continue;
    const Elf64_Shdr& names = (*sections)[table.sh_link];
    const std::string_view symbols = cut(image, table.sh_offset, table.sh_size);
    const std::string_view text = cut(image, names.sh_offset, names.sh_size);
    for (std::size_t at = 0; at + sizeof(Elf64_Sym) <= symbols.size(); at += sizeof(Elf64_Sym)) {
      const auto symbol = read_at<Elf64_Sym>(symbols, at);
      if (!symbol || ELF64_ST_TYPE(symbol->st_info) != STT_FUNC) continue;
      const bool holds =
          address == symbol->st_value ||
          (address > symbol->st_value && address - symbol->st_value < symbol->st_size);
      if (!holds || symbol->st_name >= text.size()) continue;
      const std::string_view rest = text.substr(symbol->st_name);
      return std::string(rest.substr(0, std::min<std::size_t>(rest.find('\0'), 1024)));
    }
  }
  return "";
}

}  // namespace

std::optional<std::vector<RunningKernel>> kernels_of_core(std::string_view bytes) {
  const auto sections = sections_of(bytes);
  if (!sections) return std::nullopt;
  std::vector<RunningKernel> out;
  bool tables = false;
  for (const Elf64_Shdr& table : *sections) {
    if (table.sh_type != kGridTable) continue;
    tables = true;
    if (table.sh_entsize < sizeof(GridEntry)) continue;
    const std::string_view rows = cut(bytes, table.sh_offset, table.sh_size);
    for (std::uint64_t at = 0; at + table.sh_entsize <= rows.size() && out.size() < kMostKernels;
         at += table.sh_entsize) {
      const auto grid = read_at<GridEntry>(rows, at);
      if (!grid) break;
      RunningKernel kernel;
      kernel.device = static_cast<int>(table.sh_info);
      std::copy(std::begin(grid->grid), std::end(grid->grid), kernel.grid.begin());
      std::copy(std::begin(grid->block), std::end(grid->block), kernel.block.begin());
      for (const Elf64_Shdr& image : *sections) {
        if (image.sh_type != kRelocatedImage || !kernel.name.empty()) continue;
        kernel.name = function_at(cut(bytes, image.sh_offset, image.sh_size), grid->entry);
      }
      out.push_back(std::move(kernel));
    }
  }
  if (!tables) return std::nullopt;
  return out;
}

bool ask_for_core(const std::filesystem::path& pipe) {
  const Fd fd(::open(pipe.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW));
  return fd.get() >= 0 && ::write(fd.get(), "1\n", 2) == 2;
}

std::optional<std::string> whole_core(const std::filesystem::path& file) {
  std::error_code failed;
  const std::uintmax_t size = std::filesystem::file_size(file, failed);
  if (failed || size < sizeof(Elf64_Ehdr) || size > kMostBytes) return std::nullopt;
  std::string bytes = read_regular(file, kMostBytes);
  const auto header = read_at<Elf64_Ehdr>(bytes, 0);
  if (!header || header->e_shoff == 0 || !sections_of(bytes)) return std::nullopt;
  return bytes;
}

}  // namespace warmgate::target
