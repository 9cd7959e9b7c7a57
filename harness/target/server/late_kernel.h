// What a file that appears late in a compile cache is the compilation of.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace warmgate::target {

struct LateKernel {
  std::string name;  // never empty
  std::string arch;  // "sm_90"; "" where nothing says it
};

/// By the file's name up to its first point. Where that says nothing ("kernel.cubin" of DeepGEMM,
/// the hashes of torch's inductor), the nearest folder above that has a name.
std::string kernel_of(std::string_view path);

/// The JSON file that Triton puts beside a kernel's other files, last of all: "h2/add.json" for
/// "h2/add.cubin"; "" if the file is none of Triton's.
std::string side_file_of(std::string_view path);

/// `path` relative to `root`. The side file's "name", which is the kernel's in the binary, and its
/// target, where it is there, of at most 64 KiB and legible; else kernel_of(). What stands in it is
/// data: at most 200 bytes of a name are taken, without control characters.
LateKernel late_kernel(const std::filesystem::path& root, std::string_view path);

}  // namespace warmgate::target
