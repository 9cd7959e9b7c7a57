#include "harness/probe/mapped.h"

#include <link.h>

#include <cstdint>

namespace warmgate::probe {
namespace {

struct Search {
  std::uintptr_t address;
  const char* found = nullptr;
};

int look(dl_phdr_info* info, std::size_t, void* data) {
  auto* search = static_cast<Search*>(data);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    if (header.p_type != PT_LOAD) continue;
    const std::uintptr_t begin = info->dlpi_addr + header.p_vaddr;
    if (search->address < begin || search->address - begin >= header.p_memsz) continue;
    search->found = info->dlpi_name;
    return 1;
  }
  return 0;
}

}  // namespace

std::string object_with(const void* address) {
  Search search{reinterpret_cast<std::uintptr_t>(address)};
  if (dl_iterate_phdr(look, &search) == 0 || search.found == nullptr) return "";
  // The program itself has no name there.
  return *search.found == '\0' ? "/proc/self/exe" : search.found;
}

}  // namespace warmgate::probe
