#include "harness/run/json_text.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include "harness/scenario/scenario.h"
#include "harness/scenario/text_file.h"

namespace warmgate::run {
namespace {
constexpr std::uintmax_t kLargestJson = std::uintmax_t{256} << 20;
}

void refuse_file(const std::filesystem::path& path, const std::string& why) {
  throw scenario::ScenarioError({{path.string(), 0, 0, "", why}});
}

std::string read_whole(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + file.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

nlohmann::json read_json(const std::filesystem::path& file) {
  std::error_code failed;
  if (!std::filesystem::exists(file, failed)) refuse_file(file, "there is no such file");
  if (!scenario::ends_somewhere(file)) refuse_file(file, "is no regular file");
  const std::uintmax_t bytes = std::filesystem::file_size(file, failed);
  if (!failed && bytes > kLargestJson) refuse_file(file, "is larger than 256 MiB");
  std::ifstream in(file, std::ios::binary);
  if (!in) refuse_file(file, "cannot be read");
  nlohmann::json out = nlohmann::json::parse(in, nullptr, false);
  if (out.is_discarded()) refuse_file(file, "is not JSON");
  return out;
}

nlohmann::json read_report(const std::filesystem::path& wish) {
  std::error_code failed;
  const std::filesystem::path file =
      std::filesystem::is_directory(wish, failed) ? wish / "report.json" : wish;
  nlohmann::json report = read_json(file);
  if (!report.is_object() || !report.contains("schema"))
    refuse_file(file, "is not a JSON report of run, ab or gate");
  const nlohmann::json& schema = report["schema"];
  if (!schema.is_string() || !schema.get_ref<const std::string&>().starts_with("report/1."))
    refuse_file(file, "its schema is " + schema.dump() + "; this program reads report/1");
  return report;
}

void write_whole(const std::filesystem::path& file, std::string_view text) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  if (!out) throw std::runtime_error("cannot write " + file.string() + ": " + std::strerror(errno));
}

std::string pretty(const nlohmann::json& value) {
  return value.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string text_of(const nlohmann::json& object, const char* key) {
  if (!object.is_object()) return "";
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : "";
}

std::vector<std::string> texts_of(const nlohmann::json& object, const char* key) {
  std::vector<std::string> out;
  if (!object.is_object()) return out;
  const auto it = object.find(key);
  if (it == object.end() || !it->is_array()) return out;
  for (const auto& item : *it) {
    if (item.is_string()) out.push_back(item.get<std::string>());
  }
  return out;
}

}  // namespace warmgate::run
