// What a loaded module holds: its kernels, by the symbols of its ELF image.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace warmgate::probe {

struct Cubin {
  std::size_t bytes = 0;
  std::string hash;                // 16 hex digits; the same code has the same in every run
  std::size_t kernels = 0;         // entry points
  std::vector<std::string> names;  // the first of them, as the compiler mangled them
  bool is_elf = false;             // else nothing but size and hash is known
};

/// `image` must be readable for `bytes`; whatever it holds, nothing beyond is touched.
Cubin read_cubin(const char* image, std::size_t bytes, std::size_t most_names = 8);

}  // namespace warmgate::probe
