#include <yaml-cpp/yaml.h>

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "harness/scenario/scenario.h"
#include "harness/scenario/text_file.h"
#include "harness/trace/vocabulary.h"
#include "harness/verdict/metrics.h"

namespace warmgate::verdict {
namespace {

class Reader {
 public:
  explicit Reader(const std::filesystem::path& file) : file_(file.string()) {}

  std::vector<Metric> read() {
    std::vector<Metric> out;
    try {
      if (!scenario::ends_somewhere(file_)) throw YAML::BadFile(file_);
      const YAML::Node root = YAML::LoadFile(file_);
      if (root.IsSequence()) {
        for (const YAML::Node& node : root) out.push_back(one(node));
      } else {
        out.push_back(one(root));
      }
    } catch (const YAML::BadFile&) {
      problems_.push_back({file_, 0, 0, "", "cannot be read"});
    } catch (const YAML::Exception& error) {
      problem(error.mark, "", error.msg);
    }
    if (!problems_.empty()) throw scenario::ScenarioError(std::move(problems_));
    return out;
  }

 private:
  void problem(const YAML::Mark& mark, std::string key, std::string message) {
    problems_.push_back(
        {file_, mark.line + 1, mark.column + 1, std::move(key), std::move(message)});
  }

  Metric one(const YAML::Node& node) {
    Metric metric;
    if (!node.IsMap()) {
      problem(node.Mark(), "",
              "a metric is a mapping with name, source, pattern or pointer, unit, direction");
      return metric;
    }
    metric.origin = fmt::format("{}:{}", file_, node.Mark().line + 1);
    std::string source;
    for (const auto& entry : node) {
      const std::string key = entry.first.Scalar();
      std::string* into = key == "name"        ? &metric.name
                          : key == "source"    ? &source
                          : key == "pattern"   ? &metric.pattern
                          : key == "event"     ? &metric.event
                          : key == "pointer"   ? &metric.pointer
                          : key == "stream"    ? &metric.stream
                          : key == "unit"      ? &metric.unit
                          : key == "direction" ? &metric.direction
                                               : nullptr;
      if (!into)
        problem(entry.first.Mark(), key,
                "unknown; allowed are name, source, pattern, event, pointer, stream, unit, "
                "direction");
      else if (!entry.second.IsScalar())
        problem(entry.second.Mark(), key, "must be a text");
      else
        *into = entry.second.Scalar();
    }
    check(node, source, metric);
    return metric;
  }

  void check(const YAML::Node& node, const std::string& source, Metric& metric) {
    const YAML::Mark mark = node.Mark();
    if (metric.name.empty()) problem(mark, "name", "is missing");
    if (trace::find_figure(metric.name))
      problem(mark, "name", fmt::format("'{}' is a figure that warmgate has already", metric.name));
    if (!metric.direction.empty() && metric.direction != "lower" && metric.direction != "higher")
      problem(mark, "direction", "must be lower or higher: which way is better");
    if (!metric.stream.empty() && metric.stream != "stdout" && metric.stream != "stderr")
      problem(mark, "stream", "must be stdout or stderr");
    if (source == "log") {
      metric.source = Metric::Source::kLog;
      expression(mark, metric);
    } else if (source == "counter") {
      metric.source = Metric::Source::kCounter;
      if (metric.pattern.empty()) problem(mark, "pattern", "is missing: the counter's name");
    } else if (source == "json") {
      metric.source = Metric::Source::kJson;
      try {
        (void)nlohmann::json::json_pointer(metric.pointer);
        if (metric.pointer.empty()) problem(mark, "pointer", "is missing: a JSON pointer, /a/0/b");
      } catch (const nlohmann::json::exception& error) {
        problem(mark, "pointer", error.what());
      }
    } else {
      problem(mark, "source", "must be log, counter or json");
    }
  }

  void expression(const YAML::Mark& mark, Metric& metric) {
    const NamedGroup named = strip_group_names(metric.pattern, "value");
    metric.expression = named.expression;
    metric.group = named.group;
    if (named.group == 0)
      problem(mark, "pattern", "must have a group (?<value>...) around the number");
    try {
      auto flags = std::regex::ECMAScript;
#ifdef __GLIBCXX__
      flags |= std::regex_constants::__polynomial;
#endif
      const std::regex compiled(metric.expression, flags);
    } catch (const std::regex_error& error) {
      problem(mark, "pattern", fmt::format("is no regular expression: {}", error.what()));
    }
  }

  std::string file_;
  std::vector<scenario::Problem> problems_;
};

}  // namespace

std::vector<Metric> load_metrics(const std::filesystem::path& file) { return Reader(file).read(); }

}  // namespace warmgate::verdict
