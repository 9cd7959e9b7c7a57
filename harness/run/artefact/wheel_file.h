// A wheel before anything is installed from it: is it one, and does it keep to its own folder?
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace warmgate::run {

/// What the name of a wheel says (PEP 427): name-version(-build)?-python-abi-platform.whl.
struct WheelName {
  std::string distribution, version;
};
/// Throws std::runtime_error that says what is wrong with the name.
WheelName read_wheel_name(std::string_view file_name);

/// Reads the directory of the zip, nothing of its contents. Throws std::runtime_error: no zip,
/// truncated, without METADATA or RECORD, or with a name that leads out of the folder that it is
/// unpacked into.
void check_wheel_file(const std::filesystem::path& path);

/// The file name that a URL ends with, percent-decoded; throws std::runtime_error if that is no
/// name of a wheel.
std::string wheel_name_of_url(const std::string& url);

}  // namespace warmgate::run
