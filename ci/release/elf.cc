#include "ci/release/elf.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace warmgate::release {
namespace {

class Image {
 public:
  // Mapped: a program with debug information has a hundred megabytes, of which little is looked at.
  explicit Image(const std::filesystem::path& path) : path_(path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat status {};
    if (fd < 0 || ::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
      if (fd >= 0) ::close(fd);
      fail("cannot be read");
    }
    const auto size = static_cast<std::size_t>(status.st_size);
    void* at = size == 0 ? MAP_FAILED : ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    ::close(fd);
    if (at == MAP_FAILED) fail("cannot be read");
    bytes_ = {static_cast<const char*>(at), size};
  }
  ~Image() { ::munmap(const_cast<char*>(bytes_.data()), bytes_.size()); }
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;
  template <typename T>
  T at(std::uint64_t offset) const {
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof(T)) fail("leads out of the file");
    T out;
    std::memcpy(&out, bytes_.data() + offset, sizeof out);
    return out;
  }
  std::string text(std::uint64_t offset) const {
    if (offset >= bytes_.size()) fail("leads out of the file");
    const std::size_t end = bytes_.find('\0', offset);
    if (end == std::string::npos) fail("has a text without an end");
    return std::string(bytes_.substr(offset, end - offset));
  }
  [[noreturn]] void fail(const std::string& why) const {
    throw std::runtime_error(path_.string() + ": " + why);
  }

 private:
  std::filesystem::path path_;
  std::string_view bytes_;
};

// The program's memory, as segments of the file.
struct Segments {
  std::vector<Elf64_Phdr> loads;
  std::uint64_t offset_of(const Image& image, std::uint64_t address) const {
    for (const Elf64_Phdr& load : loads) {
      if (address >= load.p_vaddr && address - load.p_vaddr < load.p_filesz)
        return load.p_offset + (address - load.p_vaddr);
    }
    image.fail("names an address that no segment holds");
  }
};

// A chain of (library, versions it must have); every link leads on, so a circle would end too.
void read_versions(const Image& image, std::uint64_t offset, std::uint64_t count,
                   std::uint64_t strings, Needs& out) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto need = image.at<Elf64_Verneed>(offset);
    const std::string library = image.text(strings + need.vn_file);
    std::uint64_t aux = offset + need.vn_aux;
    for (int j = 0; j < need.vn_cnt; ++j) {
      const auto version = image.at<Elf64_Vernaux>(aux);
      out.versions.emplace(library, image.text(strings + version.vna_name));
      aux += version.vna_next;
    }
    offset += need.vn_next;
  }
}

// "2.34" → {2, 34}; empty if it is no such thing.
std::vector<int> numbers(std::string_view text) {
  std::vector<int> out;
  const char* at = text.data();
  const char* end = at + text.size();
  while (at < end) {
    int value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    if (error != std::errc() || (next < end && *next != '.')) return {};
    out.push_back(value);
    at = next < end ? next + 1 : next;
  }
  return out;
}

}  // namespace

Needs read_needs(const std::filesystem::path& program) {
  const Image image(program);
  const auto header = image.at<Elf64_Ehdr>(0);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_machine != EM_X86_64 ||
      header.e_phentsize != sizeof(Elf64_Phdr))
    image.fail("is no x86-64 program");
  Needs out;
  Segments segments;
  std::vector<Elf64_Dyn> dynamic;
  for (int i = 0; i < header.e_phnum; ++i) {
    const auto segment = image.at<Elf64_Phdr>(header.e_phoff + i * sizeof(Elf64_Phdr));
    if (segment.p_type == PT_LOAD) segments.loads.push_back(segment);
    if (segment.p_type == PT_INTERP) out.interpreter = image.text(segment.p_offset);
    if (segment.p_type != PT_DYNAMIC) continue;
    for (std::uint64_t at = 0; at + sizeof(Elf64_Dyn) <= segment.p_filesz;
         at += sizeof(Elf64_Dyn)) {
      dynamic.push_back(image.at<Elf64_Dyn>(segment.p_offset + at));
      if (dynamic.back().d_tag == DT_NULL) break;
    }
  }
  const auto value = [&](std::int64_t tag) -> std::uint64_t {
    for (const Elf64_Dyn& entry : dynamic) {
      if (entry.d_tag == tag) return entry.d_un.d_val;
    }
    return 0;
  };
  if (dynamic.empty()) return out;  // wholly static
  const std::uint64_t strings = segments.offset_of(image, value(DT_STRTAB));
  for (const Elf64_Dyn& entry : dynamic) {
    if (entry.d_tag == DT_NEEDED) out.libraries.insert(image.text(strings + entry.d_un.d_val));
    if (entry.d_tag == DT_RPATH || entry.d_tag == DT_RUNPATH) out.search_path = true;
  }
  if (const std::uint64_t count = value(DT_VERNEEDNUM))
    read_versions(image, segments.offset_of(image, value(DT_VERNEED)), count, strings, out);
  return out;
}

std::set<std::string> obstacles(const Needs& needs, const std::string& glibc) {
  // libdl and libpthread are empty since 2.34, but there.
  static const std::set<std::string> everywhere = {
      "libc.so.6",  "libm.so.6",       "libgcc_s.so.1", "ld-linux-x86-64.so.2",
      "libdl.so.2", "libpthread.so.0", "librt.so.1"};
  std::set<std::string> out;
  if (needs.interpreter != "/lib64/ld-linux-x86-64.so.2")
    out.insert("its loader is '" + needs.interpreter + "'");
  if (needs.search_path) out.insert("it has a search path of this machine");
  for (const std::string& library : needs.libraries) {
    if (everywhere.count(library) == 0) out.insert("needs " + library);
  }
  const std::vector<int> most = numbers(glibc);
  for (const auto& [library, version] : needs.versions) {
    constexpr std::string_view kGlibc = "GLIBC_";
    if (version.rfind(kGlibc, 0) != 0) {
      // libgcc_s: GCC_3.0 … GCC_7.0.0 are in every one of gcc 7 and later.
      const bool old = library == "libgcc_s.so.1" && version.rfind("GCC_", 0) == 0 &&
                       numbers(version.substr(4)) <= std::vector<int>{7, 0, 0};
      if (!old) out.insert("needs " + version + " of " + library);
      continue;
    }
    const std::vector<int> asked = numbers(version.substr(kGlibc.size()));
    if (asked.empty() || asked > most) out.insert("needs " + version + " of " + library);
  }
  return out;
}

}  // namespace warmgate::release
