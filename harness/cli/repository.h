// Paths as git and GitHub see them: from the root of the repository, with slashes.
#pragma once

#include <filesystem>
#include <string>

namespace warmgate::cli {

/// The nearest folder at or above `folder` that holds `.git` (a folder, or the file of a worktree);
/// "" if there is none.
std::filesystem::path repository_of(const std::filesystem::path& folder);

/// `path` from `root`; "" if it leads out of it. Both are canonical.
std::string inside(const std::filesystem::path& root, const std::filesystem::path& path);

/// What an annotation calls a file: its path in its repository, else in $GITHUB_WORKSPACE; "" for
/// what is no file, or one of neither.
std::string annotation_path(const std::string& file);

}  // namespace warmgate::cli
