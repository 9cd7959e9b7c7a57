#include "harness/target/server/late_kernel.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>

#include "harness/target/fd.h"

namespace warmgate::target {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t kMostSideFile = 64 << 10;
constexpr std::size_t kMostName = 200;
constexpr std::string_view kGroup = "__grp__";  // Triton's list of a kernel's files

std::string_view last_part(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::string_view stem_in(std::string_view name) { return name.substr(0, name.find('.', 1)); }

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// A digest in hexadecimal or base 32, as caches name their entries: long, and letters and digits
// mixed. Folders of two characters or of digits alone only spread the entries.
bool is_digest(std::string_view word) {
  const auto digits =
      std::count_if(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  const bool plain =
      std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isalnum(c) != 0; });
  if (!plain) return false;
  const auto size = static_cast<std::ptrdiff_t>(word.size());
  return size <= 2 || digits == size || (size >= 26 && digits * 16 >= size);
}

bool says_nothing(std::string_view stem) {
  return is_one_of(stem,
                   {"kernel", "kernel_lib", "build", "module", "main", "index", "params", "out"}) ||
         is_digest(stem);
}

json read_side_file(const fs::path& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat info {};
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return {};
  if (info.st_size <= 0 || static_cast<std::size_t>(info.st_size) > kMostSideFile) return {};
  std::string text(static_cast<std::size_t>(info.st_size), '\0');
  const ssize_t n = ::read(fd.get(), text.data(), text.size());
  if (n <= 0) return {};
  text.resize(static_cast<std::size_t>(n));
  // A parser that recurses must not be led deeper than a stack is.
  if (std::count(text.begin(), text.end(), '[') + std::count(text.begin(), text.end(), '{') > 1000)
    return {};
  return json::parse(text, nullptr, false);
}

std::string told_name(const json& side) {
  const auto found = side.find("name");
  if (found == side.end() || !found->is_string()) return "";
  std::string name = found->get<std::string>().substr(0, kMostName);
  for (char& c : name) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return name;
}

// {"target": {"backend": "cuda", "arch": 90, …}}; another back end's arch is a word.
std::string told_arch(const json& side) {
  const auto target = side.find("target");
  if (target == side.end() || !target->is_object()) return "";
  const auto arch = target->find("arch");
  if (arch == target->end()) return "";
  if (arch->is_number_unsigned() && arch->get<std::uint64_t>() < 10000)
    return fmt::format("sm_{}", arch->get<std::uint64_t>());
  const std::string word = arch->is_string() ? arch->get<std::string>() : "";
  const bool plain = std::all_of(word.begin(), word.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-';
  });
  return plain && word.size() <= 40 ? word : "";
}

}  // namespace

std::string kernel_of(std::string_view path) {
  std::string_view name = last_part(path);
  if (name.starts_with(kGroup)) name.remove_prefix(kGroup.size());
  const std::string_view stem = stem_in(name);
  if (!says_nothing(stem)) return std::string(stem);
  std::string_view above = path;
  for (std::size_t slash = above.rfind('/'); slash != std::string_view::npos;
       slash = above.rfind('/')) {
    above = above.substr(0, slash);
    const std::string_view folder = last_part(above);
    if (!is_digest(folder)) return std::string(folder);
  }
  return std::string(stem.empty() ? name : stem);
}

std::string side_file_of(std::string_view path) {
  const std::string_view name = last_part(path);
  const std::string_view folder = path.substr(0, path.size() - name.size());
  const std::size_t point = name.rfind('.');
  if (point == std::string_view::npos || point == 0) return "";
  constexpr std::string_view kJson = "json";
  std::string_view stem = name.substr(0, point);
  const std::string_view extension = name.substr(point + 1);
  if (stem.starts_with(kGroup) && extension == kJson) stem.remove_prefix(kGroup.size());
  if (!is_one_of(extension, {"cubin", "ptx", "llir", "ttgir", "ttir", "source", "json", "hsaco",
                             "amdgcn", "spv"}))
    return "";
  return fmt::format("{}{}.json", folder, stem);
}

LateKernel late_kernel(const fs::path& root, std::string_view path) {
  LateKernel out;
  if (const std::string side = side_file_of(path); !side.empty()) {
    const json told = read_side_file(root / side);
    if (told.is_object()) {
      out.name = told_name(told);
      out.arch = told_arch(told);
    }
  }
  if (out.name.empty()) out.name = kernel_of(path);
  return out;
}

}  // namespace warmgate::target
