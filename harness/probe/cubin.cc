#include "harness/probe/cubin.h"

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string_view>

namespace warmgate::probe {
namespace {

// In st_other of a symbol: this function is an entry point (a __global__ function).
constexpr unsigned char kEntryPoint = 0x10;

class Image {
 public:
  explicit Image(std::string_view bytes) : bytes_(bytes) {}

  template <typename T>
  std::optional<T> at(std::uint64_t offset) const {
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof(T)) return std::nullopt;
    T out;
    std::memcpy(&out, bytes_.data() + offset, sizeof out);
    return out;
  }

  std::string_view text(const Elf64_Shdr& strings, std::uint64_t offset) const {
    if (strings.sh_offset > bytes_.size() || offset >= strings.sh_size) return {};
    std::string_view rest = bytes_.substr(strings.sh_offset);
    rest = rest.substr(0, strings.sh_size);
    if (offset >= rest.size()) return {};
    rest.remove_prefix(offset);
    const std::size_t end = rest.find('\0');
    return end == std::string_view::npos ? std::string_view() : rest.substr(0, end);
  }

 private:
  std::string_view bytes_;
};

// Four lanes of multiply and rotate over 8-byte words: libraries load modules of megabytes, and a
// cryptographic digest of each would cost more than all the rest of the probe. It tells modules
// apart; nobody is kept from making two alike.
std::string hash_of(std::string_view bytes) {
  constexpr std::uint64_t kPrime = 0x9E3779B97F4A7C15;
  std::uint64_t lanes[4] = {kPrime, kPrime * 3, kPrime * 5, kPrime * 7};
  const auto mix = [](std::uint64_t lane, std::uint64_t value) {
    lane = (lane ^ value) * kPrime;
    return (lane << 31) | (lane >> 33);
  };
  const auto load = [&](std::size_t at) {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data() + at, std::min<std::size_t>(8, bytes.size() - at));
    return value;
  };
  std::size_t at = 0;
  for (; at + 32 <= bytes.size(); at += 32) {
    for (std::size_t i = 0; i < 4; ++i) lanes[i] = mix(lanes[i], load(at + 8 * i));
  }
  for (; at < bytes.size(); at += 8) lanes[0] = mix(lanes[0], load(at));
  std::uint64_t sum = mix(bytes.size(), lanes[0]);
  for (std::size_t i = 1; i < 4; ++i) sum = mix(sum, lanes[i]);
  sum ^= sum >> 29;
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(sum * kPrime));
  return text;
}

void read_symbols(const Image& image, const Elf64_Shdr& table, const Elf64_Shdr& strings,
                  std::size_t most_names, Cubin& out) {
  const std::uint64_t count = table.sh_size / sizeof(Elf64_Sym);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto symbol = image.at<Elf64_Sym>(table.sh_offset + i * sizeof(Elf64_Sym));
    if (!symbol) return;  // a table that claims to be longer than the image
    if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || (symbol->st_other & kEntryPoint) == 0)
      continue;
    const std::string_view name = image.text(strings, symbol->st_name);
    if (name.empty()) continue;
    ++out.kernels;
    if (out.names.size() < most_names) out.names.emplace_back(name.substr(0, 512));
  }
}

}  // namespace

Cubin read_cubin(const char* bytes, std::size_t size, std::size_t most_names) {
  Cubin out;
  out.bytes = size;
  if (bytes == nullptr || size == 0) return out;
  const std::string_view whole(bytes, size);
  out.hash = hash_of(whole);
  const Image image(whole);
  const auto header = image.at<Elf64_Ehdr>(0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
      header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_shentsize != sizeof(Elf64_Shdr))
    return out;
  out.is_elf = true;
  for (std::uint64_t i = 0; i < header->e_shnum; ++i) {
    const auto section = image.at<Elf64_Shdr>(header->e_shoff + i * sizeof(Elf64_Shdr));
    if (!section) break;
    if (section->sh_type != SHT_SYMTAB || section->sh_link >= header->e_shnum) continue;
    const auto strings =
        image.at<Elf64_Shdr>(header->e_shoff + section->sh_link * sizeof(Elf64_Shdr));
    if (strings) read_symbols(image, *section, *strings, most_names, out);
  }
  return out;
}

}  // namespace warmgate::probe
