// Files and JSON that somebody else wrote, read without surprises.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace warmgate::run {

/// Throws ScenarioError about `path`: bad usage.
[[noreturn]] void refuse_file(const std::filesystem::path& path, const std::string& why);

/// Whole files. Throw std::runtime_error naming the path; write_whole() makes the folder.
std::string read_whole(const std::filesystem::path& file);
void write_whole(const std::filesystem::path& file, std::string_view text);

/// JSON of a file of at most 256 MiB that ends somewhere; ScenarioError otherwise. read_report()
/// takes no other than a report of run, ab or gate, or a folder that --keep wrote.
nlohmann::json read_json(const std::filesystem::path& file);
nlohmann::json read_report(const std::filesystem::path& wish);

/// With indentation, invalid UTF-8 replaced, newline at the end.
std::string pretty(const nlohmann::json& value);

/// The field if `object` is one and has it as a string, else "".
std::string text_of(const nlohmann::json& object, const char* key);
/// The strings of an array; others are left out.
std::vector<std::string> texts_of(const nlohmann::json& object, const char* key);

}  // namespace warmgate::run
