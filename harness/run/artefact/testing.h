// Artefacts for tests: wheels made by hand, virtual environments without an interpreter's help, git
// repositories.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "harness/run/artefact/artefacts.h"
#include "harness/run/artefact/store.h"
#include "harness/run/run_dir.h"
#include "harness/trace/sha256.h"

namespace warmgate::run::testing {

namespace fs = std::filesystem;

inline void write_file(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}
inline std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
inline fs::path write_script(const fs::path& path, const std::string& text) {
  write_file(path, text);
  fs::permissions(path, fs::perms::owner_all);
  return path;
}

inline std::uint32_t crc32(const std::string& bytes) {
  std::uint32_t crc = 0xffffffff;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0u);
  }
  return ~crc;
}

/// A zip of stored (not packed) files, in this order.
inline std::string zip_of(const std::vector<std::pair<std::string, std::string>>& files) {
  const auto number = [](std::uint64_t value, int bytes) {
    std::string out;
    for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
    return out;
  };
  std::string out, directory;
  for (const auto& [name, text] : files) {
    // Date 1980-01-01: the earliest there is.
    const std::string common = number(20, 2) + number(0, 2) + number(0, 2) + number(0, 2) +
                               number(33, 2) + number(crc32(text), 4) + number(text.size(), 4) +
                               number(text.size(), 4) + number(name.size(), 2) + number(0, 2);
    directory += number(0x02014b50, 4) + number(20, 2) + common + number(0, 2) + number(0, 2) +
                 number(0, 2) + number(0644u << 16, 4) + number(out.size(), 4) + name;
    out += number(0x04034b50, 4) + common + name + text;
  }
  const std::uint64_t at = out.size();
  out += directory;
  out += number(0x06054b50, 4) + number(0, 4) + number(files.size(), 2) + number(files.size(), 2) +
         number(directory.size(), 4) + number(at, 4) + number(0, 2);
  return out;
}

/// As RECORD writes it.
inline std::string record_hash(const std::string& bytes) {
  const std::string hex = trace::sha256_hex(bytes);
  static const char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::string out;
  unsigned bits = 0, held = 0;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    bits = bits << 8 | static_cast<unsigned>(std::stoi(hex.substr(i, 2), nullptr, 16));
    for (held += 8; held >= 6;) {
      held -= 6;
      out += kDigits[bits >> held & 63];
    }
  }
  if (held > 0) out += kDigits[bits << (6 - held) & 63];
  return "sha256=" + out;
}

using Files = std::map<std::string, std::string>;

/// The files of a distribution with its .dist-info and a RECORD that is right.
inline std::vector<std::pair<std::string, std::string>> distribution(const std::string& name,
                                                                     const std::string& version,
                                                                     Files files) {
  const std::string info = name + "-" + version + ".dist-info/";
  files[info + "METADATA"] =
      "Metadata-Version: 2.1\nName: " + name + "\nVersion: " + version + "\n\nName: not this\n";
  files[info + "WHEEL"] =
      "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n";
  std::string record;
  for (const auto& [path, text] : files)
    record += path + "," + record_hash(text) + "," + std::to_string(text.size()) + "\n";
  record += info + "RECORD,,\n";
  std::vector<std::pair<std::string, std::string>> out(files.begin(), files.end());
  out.emplace_back(info + "RECORD", record);
  return out;
}

inline fs::path make_wheel_file(const fs::path& folder, const std::string& name,
                                const std::string& version, const Files& files) {
  const fs::path path = folder / (name + "-" + version + "-py3-none-any.whl");
  write_file(path, zip_of(distribution(name, version, files)));
  return path;
}

/// An environment that has the shape of one; bin/python leads to `python`.
inline fs::path make_fake_venv(const fs::path& root, const fs::path& python = "/bin/sh") {
  write_file(root / "pyvenv.cfg",
             "home = /usr/bin\ninclude-system-site-packages = false\nversion = 3.11.2\n");
  fs::create_directories(root / "bin");
  fs::create_symlink(python, root / "bin/python");
  fs::create_directories(root / "lib/python3.11/site-packages");
  return root;
}
inline fs::path site_packages(const fs::path& venv) {
  return venv / "lib/python3.11/site-packages";
}
/// As an installer leaves it: RECORD last.
inline void install_fake(const fs::path& venv, const std::string& name, const std::string& version,
                         const Files& files = {}) {
  for (const auto& [path, text] : distribution(name, version, files))
    write_file(site_packages(venv) / path, text);
}

/// A folder of the test, with a store below it.
class ArtefactTest : public ::testing::Test {
 protected:
  ArtefactTest() : dir_("artefact-test") {
    // Other tests' measurements are not in the way of builds.
    ::setenv("XDG_RUNTIME_DIR", dir_.path().c_str(), 1);
  }
  ~ArtefactTest() override { ::unsetenv("XDG_RUNTIME_DIR"); }
  fs::path path(const std::string& name) const { return dir_.path() / name; }
  /// Runs a shell line in the test's folder; its output is the test's.
  static void shell(const std::string& line) { ASSERT_EQ(std::system(line.c_str()), 0) << line; }

  RunDir dir_;
  target::CancelToken cancel_;
};

/// The message of what is thrown, "" if nothing is.
template <typename Work>
std::string message_of(Work&& work) {
  try {
    work();
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace warmgate::run::testing
