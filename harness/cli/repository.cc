#include "harness/cli/repository.h"

#include <cstdlib>
#include <system_error>

namespace warmgate::cli {

namespace fs = std::filesystem;

fs::path repository_of(const fs::path& folder) {
  std::error_code error;
  for (fs::path at = fs::weakly_canonical(folder, error); !error; at = at.parent_path()) {
    if (fs::exists(at / ".git", error)) return at;
    error.clear();
    if (!at.has_relative_path()) break;
  }
  return {};
}

std::string inside(const fs::path& root, const fs::path& path) {
  if (root.empty()) return "";
  const std::string relative = path.lexically_relative(root).generic_string();
  const bool out =
      relative.empty() || relative == "." || relative == ".." || relative.rfind("../", 0) == 0;
  return out ? "" : relative;
}

std::string annotation_path(const std::string& file) {
  std::error_code error;
  if (file.empty() || !fs::is_regular_file(file, error)) return "";
  const fs::path path = fs::canonical(file, error);
  if (error) return "";
  if (std::string found = inside(repository_of(path.parent_path()), path); !found.empty())
    return found;
  const char* workspace = std::getenv("GITHUB_WORKSPACE");
  if (!workspace || !*workspace) return "";
  const fs::path root = fs::weakly_canonical(workspace, error);
  return error ? "" : inside(root, path);
}

}  // namespace warmgate::cli
