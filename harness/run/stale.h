// Run folders that a killed warmgate left behind.
#pragma once

#include <filesystem>

#include "harness/run/run_dir.h"

namespace warmgate::run {

/// A run folder holds this file, and its owner holds a lock on it: the kernel releases that when
/// the owner dies, however it does, and whatever namespace its pid is of.
inline constexpr const char* kOwnerFile = ".owner";

/// Marks a folder as in use by this process; not valid where it could not be.
UniqueFd own(const std::filesystem::path& folder);

/// Removes the folders `warmgate-*` under `root` that are this user's, private (0700), marked, and
/// whose owner is gone. Links are neither followed nor taken for folders; nothing of another file
/// system is touched. Returns how many went. Never throws.
int sweep_stale(const std::filesystem::path& root);

}  // namespace warmgate::run
