#include <yaml-cpp/yaml.h>

#include <fmt/format.h>

#include "harness/contract/external.h"
#include "harness/scenario/scenario.h"
#include "harness/scenario/text_file.h"

namespace warmgate::contract {
namespace {

using scenario::Problem;

class Reader {
 public:
  explicit Reader(const std::filesystem::path& file) : file_(file) {}

  std::vector<ExternalContract> read() {
    std::vector<ExternalContract> out;
    try {
      if (!scenario::ends_somewhere(file_)) throw YAML::BadFile(file_.string());
      const YAML::Node root = YAML::LoadFile(file_.string());
      if (root.IsSequence()) {
        for (const YAML::Node& node : root) out.push_back(one(node));
      } else {
        out.push_back(one(root));
      }
    } catch (const YAML::BadFile&) {
      problems_.push_back({file_.string(), 0, 0, "", "cannot be read"});
    } catch (const YAML::Exception& error) {
      problem(error.mark, "", error.msg);
    }
    if (!problems_.empty()) throw scenario::ScenarioError(std::move(problems_));
    return out;
  }

 private:
  void problem(const YAML::Mark& mark, std::string key, std::string message) {
    problems_.push_back(
        {file_.string(), mark.line + 1, mark.column + 1, std::move(key), std::move(message)});
  }

  std::vector<std::string> strings(const YAML::Node& node, const std::string& key) {
    std::vector<std::string> out;
    if (node.IsSequence()) {
      for (const YAML::Node& item : node) {
        if (item.IsScalar())
          out.push_back(item.Scalar());
        else
          problem(item.Mark(), key, "must be a list of texts");
      }
    } else {
      problem(node.Mark(), key, "must be a list of texts");
    }
    return out;
  }

  ExternalContract one(const YAML::Node& node) {
    ExternalContract contract;
    if (!node.IsMap()) {
      problem(node.Mark(), "", "a contract is a mapping with name, argv, needs, deadline_s");
      return contract;
    }
    for (const auto& entry : node) {
      const std::string key = entry.first.Scalar();
      const YAML::Node& value = entry.second;
      if (key == "name" && value.IsScalar()) {
        contract.name = value.Scalar();
      } else if (key == "argv") {
        contract.argv = strings(value, key);
      } else if (key == "needs") {
        contract.needs = strings(value, key);
      } else if (key == "deadline_s" && value.IsScalar()) {
        double seconds = 0;
        if (!YAML::convert<double>::decode(value, seconds) || !(seconds > 0) || seconds > 3600)
          problem(value.Mark(), key, "must be seconds, more than 0 and at most 3600");
        else
          contract.deadline = std::chrono::milliseconds(static_cast<long>(seconds * 1000));
      } else {
        problem(entry.first.Mark(), key, "unknown; allowed are name, argv, needs, deadline_s");
      }
    }
    if (contract.name.empty()) problem(node.Mark(), "name", "is missing");
    if (find_contract(contract.name))
      problem(node.Mark(), "name", fmt::format("'{}' is a built-in contract", contract.name));
    if (contract.argv.empty() || contract.argv.front().empty()) {
      problem(node.Mark(), "argv", "is missing: the program and its arguments");
    } else if (contract.argv.front().find('/') != std::string::npos) {
      contract.argv.front() =
          (std::filesystem::absolute(file_).parent_path() / contract.argv.front()).string();
    }
    return contract;
  }

  std::filesystem::path file_;
  std::vector<Problem> problems_;
};

}  // namespace

std::vector<ExternalContract> load_external_contracts(const std::filesystem::path& file) {
  return Reader(file).read();
}

}  // namespace warmgate::contract
