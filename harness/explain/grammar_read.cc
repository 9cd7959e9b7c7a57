#include "harness/explain/grammar_read.h"

#include <algorithm>
#include <set>

#include "harness/explain/yaml_reader.h"

namespace warmgate::explain::internal {
namespace {

const std::set<std::string>& special_groups() {
  static const std::set<std::string> names = {"worker",  "rank",  "function", "file",
                                              "version", "world", "tp",       "type",
                                              "kernel",  "step",  "message"};
  return names;
}
class GrammarReader : private YamlReader {
 public:
  explicit GrammarReader(Problems& problems, bool adding = false)
      : YamlReader(problems), adding_(adding) {}

  void read(const Node& root, Grammar& out, GrammarSet& set, int index) {
    if (!keys(root, {"engine", "about", "detect", "forms", "serving", "figures", "derived", "lines",
                     "types", "plain_types", "ignore_files", "frame_phases", "patience_s",
                     "every_rank_speaks"})) {
      return;
    }
    if (const NodePtr engine = root.find("engine")) out.engine = text(*engine);
    if (const NodePtr every = root.find("every_rank_speaks")) out.every_rank_speaks = flag(*every);
    figures(root.find("figures"), out);
    each(root.find("lines"), [&](const Node& node) { line(node, out); });
    each(root.find("serving"), [&](const Node& node) { serving(node, out); });
    each(root.find("derived"), [&](const Node& node) { derived(node, out); });
    strings(root.find("types"), out.types);
    strings(root.find("plain_types"), out.plain_types);
    strings(root.find("ignore_files"), out.ignore_files);
    for_map(root.find("frame_phases"), [&](const std::string& key, const Node& value) {
      out.frame_phases.emplace(key, phase(value, true));
    });
    for_map(root.find("patience_s"), [&](const std::string& key, const Node& value) {
      out.patience_s.emplace(key, number(value));
    });
    each(root.find("detect"), [&](const Node& node) { evidence(node, set, index); });
    for_map(root.find("forms"), [&](const std::string& key, const Node& value) {
      const int form = form_named(key);
      if (form < 0) return problems_.add(value, "no such form of prefix: " + key);
      set.forms[static_cast<std::size_t>(form)].push_back({index, static_cast<int>(number(value))});
    });
  }

  void figures(const NodePtr& map, Grammar& out) {
    for_map(map, [&](const std::string& name, const Node& node) {
      if (adding_ && out.figure(name) >= 0) return;
      FigureRule rule;
      rule.name = name;
      if (node.kind != Node::Kind::kNull &&
          keys(node, {"fold", "nth", "ranks", "per_span", "list_as"})) {
        if (const NodePtr list = node.find("list_as")) rule.list_as = text(*list);
        if (const NodePtr fold = node.find("fold")) {
          rule.fold = choice<Fold>(*fold, {{"last", Fold::kLast},
                                           {"first", Fold::kFirst},
                                           {"sum", Fold::kSum},
                                           {"max", Fold::kMax},
                                           {"min", Fold::kMin},
                                           {"nth", Fold::kNth},
                                           {"count", Fold::kCount},
                                           {"items", Fold::kItems}});
        }
        if (const NodePtr nth = node.find("nth")) rule.nth = static_cast<int>(number(*nth));
        if (const NodePtr ranks = node.find("ranks")) {
          rule.ranks = choice<Ranks>(*ranks, {{"max", Ranks::kMax},
                                              {"min", Ranks::kMin},
                                              {"sum", Ranks::kSum},
                                              {"last", Ranks::kLast},
                                              {"list", Ranks::kList}});
        }
        if (const NodePtr span = node.find("per_span")) rule.per_span = flag(*span);
      }
      add_figure(rule, out);
    });
  }

 private:
  static int form_named(std::string_view name) {
    static const std::vector<std::string_view> names = {
        "none",     "vllm",  "sglang", "sglang_rank", "trt",  "trt_cpp", "turbomind",
        "lmdeploy", "llama", "tgi",    "python",      "c10d", "glog",    "uvicorn"};
    const auto it = std::find(names.begin(), names.end(), name);
    return it == names.end() ? -1 : static_cast<int>(it - names.begin());
  }

  std::string pattern(const Node& node, bool anywhere) {
    std::string error;
    std::string out = expand_pattern(text(node), error);
    if (!error.empty()) problems_.add(node, error);
    return anywhere ? ".*?(?:" + out + ")" : out;
  }

  static int add_figure(const FigureRule& rule, Grammar& out) {
    if (const int known = out.figure(rule.name); known >= 0) {
      out.figures[static_cast<std::size_t>(known)] = rule;
      return known;
    }
    out.figures.push_back(rule);
    return static_cast<int>(out.figures.size()) - 1;
  }
  static void want_figure(const std::string& name, Fold fold, Grammar& out) {
    if (name.empty() || out.figure(name) >= 0) return;
    FigureRule rule;
    rule.name = name;
    rule.fold = fold;
    add_figure(rule, out);
  }

  void line(const Node& node, Grammar& out) {
    if (!keys(node,
              {"name", "match", "anywhere", "in", "then", "sort", "ready", "every_rank", "type",
               "clock", "since", "count", "begins", "ends", "bar", "without", "resets"})) {
      return;
    }
    LineRule rule;
    const auto get = [&](const char* key, std::string& to) {
      if (const NodePtr value = node.find(key)) to = text(*value);
    };
    get("name", rule.name);
    get("type", rule.type);
    get("clock", rule.clock);
    get("since", rule.since);
    get("count", rule.count);
    get("bar", rule.bar);
    get("without", rule.without);
    if (const NodePtr value = node.find("begins"))
      rule.interval = text(*value), rule.interval_begins = true;
    get("ends", rule.interval);
    if (const NodePtr value = node.find("in")) rule.in = phase(*value);
    if (const NodePtr value = node.find("then")) rule.then = phase(*value);
    if (const NodePtr value = node.find("ready")) rule.ready = flag(*value);
    if (const NodePtr value = node.find("every_rank")) rule.every_rank = flag(*value);
    if (const NodePtr value = node.find("sort")) rule.sort = sort(*value);
    if (rule.sort == Sort::kNone && !rule.in.empty()) rule.sort = Sort::kProgress;
    strings(node.find("resets"), rule.resets);
    want_figure(rule.clock, Fold::kLast, out);
    want_figure(rule.since, Fold::kLast, out);
    want_figure(rule.count, Fold::kSum, out);
    want_figure(rule.interval, Fold::kSum, out);
    const NodePtr anywhere = node.find("anywhere");
    const bool loose = anywhere && flag(*anywhere);
    const NodePtr match = node.find("match");
    if (!match) return problems_.add(node, "a line needs match");
    if (rule.name.empty()) problems_.add(node, "a line needs a name");
    const auto one = [&](const Node& item) {
      const std::string error = out.patterns.add(pattern(item, loose));
      if (!error.empty()) return problems_.add(item, error);
      LineRule copy = rule;
      takes(item, out.patterns.groups(out.patterns.size() - 1), copy, out);
      out.lines.push_back(std::move(copy));
    };
    if (match->is_scalar()) {
      one(*match);
    } else {
      each(match, one);
    }
  }

  Sort sort(const Node& node) {
    return choice<Sort>(node, {{"progress", Sort::kProgress},
                               {"skip", Sort::kSkip},
                               {"swallowed", Sort::kSwallowed},
                               {"cause", Sort::kCause},
                               {"echo", Sort::kEcho},
                               {"victim", Sort::kVictim},
                               {"outside", Sort::kOutside},
                               {"noise", Sort::kNoise},
                               {"hang", Sort::kHang},
                               {"compile", Sort::kCompile},
                               {"waiting", Sort::kWaiting},
                               {"detail", Sort::kDetail},
                               {"survived", Sort::kSurvived},
                               {"serving", Sort::kServing},
                               {"shutdown", Sort::kShutdown}});
  }

  void takes(const Node& node, const std::vector<std::string>& groups, LineRule& rule,
             Grammar& out) {
    for (std::size_t i = 0; i < groups.size(); ++i) {
      LineRule::Take take;
      take.group = static_cast<int>(i);
      // name__2, name__3: a second place in the same line for the same figure.
      const std::string name = groups[i].substr(0, groups[i].find("__"));
      if (special_groups().count(name) > 0) {
        take.special = name;
        rule.names = true;
      } else {
        take.figure = out.figure(name);
        if (take.figure < 0) {
          std::vector<std::string> known(special_groups().begin(), special_groups().end());
          for (const FigureRule& figure : out.figures) known.push_back(figure.name);
          problems_.add(node, "no figure is called " + scenario::shown(name) +
                                  scenario::did_you_mean(name, known));
          continue;
        }
      }
      rule.takes.push_back(std::move(take));
    }
  }

  void serving(const Node& node, Grammar& out) {
    if (!keys(node, {"contains", "ends", "serves"})) return;
    ServingMark mark;
    if (const NodePtr value = node.find("contains")) mark.text = text(*value);
    if (const NodePtr value = node.find("ends")) mark.end = text(*value);
    if (const NodePtr value = node.find("serves")) mark.serves = flag(*value);
    if (mark.text.size() + mark.end.size() < 4) {
      return problems_.add(node, "contains or ends, at least 4 bytes");
    }
    out.serving.push_back(std::move(mark));
  }

  void derived(const Node& node, Grammar& out) {
    if (!keys(node, {"name", "times", "over", "seconds_of", "spans_of", "at_least", "first_pass",
                     "whole"}))
      return;
    Derived rule;
    const auto get = [&](const char* key, std::string& to) {
      if (const NodePtr value = node.find(key)) to = text(*value);
    };
    get("name", rule.name);
    get("seconds_of", rule.seconds_of);
    get("spans_of", rule.spans_of);
    get("first_pass", rule.first_pass);
    if (const NodePtr value = node.find("at_least"))
      rule.at_least = static_cast<int>(number(*value));
    if (const NodePtr value = node.find("whole")) rule.whole = flag(*value);
    const auto factors = [&](const char* key, std::vector<std::vector<std::string>>& to) {
      each(node.find(key), [&](const Node& item) {
        to.emplace_back();
        if (item.is_scalar()) return to.back().push_back(item.text);
        for (const NodePtr& alternative : item.items) to.back().push_back(text(*alternative));
      });
    };
    factors("times", rule.times);
    factors("over", rule.over);
    if (rule.name.empty()) problems_.add(node, "a derived figure needs a name");
    out.derived.push_back(std::move(rule));
  }

  void evidence(const Node& node, GrammarSet& set, int index) {
    if (!keys(node, {"match", "weight", "anywhere"})) return;
    const NodePtr weight = node.find("weight"), match = node.find("match"),
                  loose = node.find("anywhere");
    if (!match) return problems_.add(node, "match is needed");
    const auto one = [&](const Node& item) {
      const std::string error = set.detect.add(pattern(item, loose && flag(*loose)));
      if (!error.empty()) return problems_.add(item, error);
      set.evidence.push_back({index, weight ? static_cast<int>(number(*weight)) : 3});
    };
    if (match->is_scalar()) {
      one(*match);
    } else {
      each(match, one);
    }
  }

  const bool adding_;
};

}  // namespace

void read_figures(const scenario::NodePtr& map, Grammar& out, scenario::Problems& problems) {
  GrammarReader(problems).figures(map, out);
}

void read_grammar(const scenario::Node& root, Grammar& out, GrammarSet& set, int index, bool adding,
                  scenario::Problems& problems) {
  GrammarReader(problems, adding).read(root, out, set, index);
}

}  // namespace warmgate::explain::internal
