// What a program asks of the system that starts it, read from its ELF file.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <utility>

namespace warmgate::release {

struct Needs {
  std::string interpreter;
  std::set<std::string> libraries;                         // DT_NEEDED
  std::set<std::pair<std::string, std::string>> versions;  // (library, symbol version)
  bool search_path = false;                                // DT_RPATH or DT_RUNPATH
};

/// Of a 64-bit little-endian x86-64 program. Throws std::runtime_error for anything else and for
/// tables that lead out of the file.
Needs read_needs(const std::filesystem::path& program);

/// What would keep it from starting on any system from that glibc on ("2.34"), one line each:
/// libraries beyond libc, libm, libgcc_s and the loader, versions above it, search paths.
std::set<std::string> obstacles(const Needs& needs, const std::string& glibc);

}  // namespace warmgate::release
