#include "harness/scenario/check.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/scenario/contract_names.h"
#include "harness/scenario/overlay.h"
#include "harness/scenario/scalars.h"
#include "harness/trace/vocabulary.h"

namespace warmgate::scenario {

Vocabulary Vocabulary::with(const LoadOptions& options) {
  Vocabulary out;
  for (const trace::FigureRule& rule : trace::figures()) {
    out.figures[std::string(rule.name)] = std::string(rule.unit);
  }
  out.figures.insert(options.extra_figures.begin(), options.extra_figures.end());
  for (const ContractName& contract : contract_names()) out.contracts.emplace_back(contract.name);
  for (const std::string& name : options.extra_contracts) out.contracts.push_back(name);
  return out;
}

std::vector<std::string> Vocabulary::figure_names() const {
  std::vector<std::string> out;
  for (const auto& [name, unit] : figures) out.push_back(name);
  return out;
}

std::string_view Vocabulary::unit_of(const std::string& figure) const {
  const auto it = figures.find(figure);
  return it == figures.end() ? std::string_view() : std::string_view(it->second);
}

namespace {

std::string_view kind_name(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kNull:
      return "nothing";
    case Node::Kind::kScalar:
      return "a single value";
    case Node::Kind::kList:
      return "a list";
    case Node::Kind::kMap:
      return "a map";
  }
  return "";
}

std::string child_path(const Node& node, const std::string& key) {
  return node.path.empty() ? key : node.path + "." + key;
}

// The section of a key path, e.g. limits of variants.A.limits.max_model_len.
void taint(const std::string& path, Tainted& tainted) {
  std::size_t begin = 0;
  while (begin <= path.size()) {
    const std::size_t end = std::min(path.find_first_of(".[", begin), path.size());
    const std::string part = path.substr(begin, end - begin);
    if (overlay_field().find(part)) tainted.insert(part);
    begin = end + 1;
  }
}

// `wheel: a.whl` as {path: a.whl}.
NodePtr spelt_out(const NodePtr& node, const Field& field) {
  auto out = std::make_shared<Node>(*node);
  out->kind = Node::Kind::kMap;
  out->text.clear();
  out->entries = {{std::string(field.short_key), node->place, node}};
  return out;
}

}  // namespace

void Checker::wrong_at(const Place& place, const std::string& path, const std::string& message) {
  taint(path, tainted_);
  problems_.add(place, path, message);
}

NodePtr Checker::wrong(const Node& node, const std::string& message) {
  wrong_at(node.place, node.path, message);
  return nullptr;
}

NodePtr Checker::check(const NodePtr& node, const Field& field, std::string_view unit,
                       bool partial) {
  if (field.type == Type::kRefused) return wrong(*node, std::string(field.meaning));
  if (node->kind == Node::Kind::kNull) {
    return wrong(*node, "nothing is given; leave the key out, or give " +
                            (field.meaning.empty() ? "a value" : std::string(field.meaning)));
  }
  switch (field.type) {
    case Type::kList:
    case Type::kOneOrMore:
      return list(node, field, unit);
    case Type::kObject:
      if (!field.short_key.empty() && node->is_scalar()) {
        return object(spelt_out(node, field), field, unit, partial);
      }
      return object(node, field, unit, partial);
    case Type::kNamed:
      return named(node, field);
    case Type::kExpect:
      return expectation(node, field);
    case Type::kMatrix:
      return matrix(node);
    case Type::kAny:
      return node;
    default:
      return scalar(node, field, unit);
  }
}

NodePtr Checker::scalar(const NodePtr& node, const Field& field, std::string_view unit) {
  if (!node->is_scalar()) {
    return wrong(*node, fmt::format("expected a single value, got {}", kind_name(*node)));
  }
  const std::string why = scalar_error(*node, field, unit, vocabulary_);
  return why.empty() ? node : wrong(*node, why);
}

NodePtr Checker::list(const NodePtr& node, const Field& field, std::string_view unit) {
  const Field& item_field = field.fields.front();
  if (!node->is_list()) {
    if (field.type == Type::kOneOrMore) return check(node, item_field, unit);
    if (field.name == "argv" || field.name == "command" || field.name == "stop") {
      return wrong(*node,
                   "expected a list such as [prog, --flag, value]; a command line as one text is "
                   "not taken, because no shell splits it");
    }
    return wrong(*node, fmt::format("expected a list, got {}", kind_name(*node)));
  }
  if (node->items.size() < field.min_items) {
    return wrong(*node, fmt::format("expected at least {} entr{}, got {}", field.min_items,
                                    field.min_items == 1 ? "y" : "ies", node->items.size()));
  }
  if (node->items.size() > field.max_items) {
    return wrong(*node, fmt::format("expected at most {} entries, got {}", field.max_items,
                                    node->items.size()));
  }
  auto out = std::make_shared<Node>(*node);
  out->items.clear();
  for (const NodePtr& item : node->items) {
    if (NodePtr good = check(item, item_field, unit)) out->items.push_back(std::move(good));
  }
  // A list with a hole would shift what comes after it.
  if (out->items.size() != node->items.size()) return nullptr;
  if (field.name == "architectures" || field.name == "phases") {
    for (std::size_t i = 0; i < out->items.size(); ++i) {
      for (std::size_t k = 0; k < i; ++k) {
        if (out->items[i]->text == out->items[k]->text) {
          return wrong(*out->items[i], shown(out->items[i]->text) + " is listed twice");
        }
      }
    }
  }
  return out;
}

void Checker::refuse_mixed(const Node& node, const Field& field) {
  std::string first;
  std::size_t first_group = 0;
  for (const Node::Entry& entry : node.entries) {
    for (std::size_t g = 0; g < field.either.size(); ++g) {
      const auto& group = field.either[g];
      if (std::find(group.begin(), group.end(), entry.key) == group.end()) continue;
      if (first.empty()) {
        first = entry.key;
        first_group = g;
      } else if (g != first_group) {
        wrong_at(entry.place, child_path(node, entry.key),
                 entry.key + " and " + first + " exclude each other; give one of them");
      }
    }
  }
}

NodePtr Checker::object(const NodePtr& node, const Field& field, std::string_view unit,
                        bool partial) {
  if (!node->is_map()) {
    return wrong(*node, fmt::format("expected a map with keys {}, got {}",
                                    list_of(key_names(field)), kind_name(*node)));
  }
  refuse_mixed(*node, field);
  auto out = std::make_shared<Node>(*node);
  out->entries.clear();
  for (const Node::Entry& entry : node->entries) {
    const Field* child = field.find(entry.key);
    if (!child) {
      const auto names = key_names(field);
      const auto meant = nearest(entry.key, names);
      if (meant) taint(*meant, tainted_);
      wrong_at(entry.place, child_path(*node, entry.key),
               "unknown key" + (meant ? "; did you mean " + *meant + "?"
                                      : "; allowed here: " + list_of(names)));
      continue;
    }
    if (NodePtr good = check(entry.value, *child, unit)) {
      out->entries.push_back({entry.key, entry.place, std::move(good)});
    }
  }
  for (const Field& child : field.fields) {
    if (child.required && !partial && !node->find(child.name)) {
      wrong_at(node->place, child_path(*node, std::string(child.name)),
               "missing; " + std::string(child.meaning));
    }
  }
  return out;
}

std::string Checker::key_error(const std::string& key, Keys keys) const {
  const auto one_of = [&](const std::vector<std::string>& names, std::string_view what) {
    if (std::find(names.begin(), names.end(), key) != names.end()) return std::string();
    const std::string meant = did_you_mean(key, names);
    return fmt::format("{} is no {}{}", shown(key), what,
                       meant.empty() ? "; known: " + list_of(names) : meant);
  };
  std::vector<std::string> names;
  switch (keys) {
    case Keys::kVariant:
    case Keys::kMember:
    case Keys::kStore: {
      const Field name{"", Type::kName, ""};
      Node node;
      node.kind = Node::Kind::kScalar;
      node.text = key;
      return scalar_error(node, name, "", vocabulary_);
    }
    case Keys::kRank: {
      const auto rank = read_integer(key);
      if (rank && *rank.value >= 0 && *rank.value < 64) return "";
      return "expected a rank, 0 to 63, got " + shown(key);
    }
    case Keys::kFigure:
      return one_of(vocabulary_.figure_names(), "figure");
    case Keys::kFigureOrContract:
      names = vocabulary_.figure_names();
      names.insert(names.end(), vocabulary_.contracts.begin(), vocabulary_.contracts.end());
      return one_of(names, "figure or contract");
    case Keys::kPhaseOrDefault:
      names.assign(trace::phases().begin(), trace::phases().end());
      names.emplace_back("default");
      return one_of(names, "phase");
    case Keys::kDrafterMethod:
      return one_of({"dspark", "mtp"}, "drafting method");
    case Keys::kAnyName:
      return key.empty() ? "expected a name, got ''" : "";
    case Keys::kEnvironment:
      return key.empty() || key.find('=') != std::string::npos
                 ? "expected the name of an environment variable, got " + shown(key)
                 : "";
  }
  return "";
}

NodePtr Checker::named(const NodePtr& node, const Field& field) {
  if (!node->is_map()) {
    return wrong(*node, fmt::format("expected a map, got {}", kind_name(*node)));
  }
  auto out = std::make_shared<Node>(*node);
  out->entries.clear();
  for (const Node::Entry& entry : node->entries) {
    const std::string why = key_error(entry.key, field.keys);
    if (!why.empty()) {
      wrong_at(entry.place, child_path(*node, entry.key), why);
      continue;
    }
    const bool about_figure = field.keys == Keys::kFigure || field.keys == Keys::kFigureOrContract;
    const std::string_view unit = about_figure ? vocabulary_.unit_of(entry.key) : "";
    if (NodePtr good = check(entry.value, field.fields.front(), unit)) {
      out->entries.push_back({entry.key, entry.place, std::move(good)});
    }
  }
  return out;
}

NodePtr Checker::expectation(const NodePtr& node, const Field& field) {
  const Field& one = field.fields.front();
  if (!node->is_map()) return object(node, one, "", true);
  // Direct if every key is one of an expectation; whether variants exist is judged with them.
  const bool direct = std::any_of(node->entries.begin(), node->entries.end(),
                                  [&](const Node::Entry& e) { return one.find(e.key); });
  if (direct) return object(node, one, "", true);
  auto out = std::make_shared<Node>(*node);
  out->entries.clear();
  for (const Node::Entry& entry : node->entries) {
    if (entry.value->is_scalar()) {  // a misspelt key of a direct expectation
      const std::string meant = did_you_mean(entry.key, key_names(one));
      wrong_at(entry.place, child_path(*node, entry.key),
               meant.empty()
                   ? "expected the name of a variant with a map of " + list_of(key_names(one))
                   : "unknown key" + meant);
      continue;
    }
    if (NodePtr good = check(entry.value, one)) {
      out->entries.push_back({entry.key, entry.place, std::move(good)});
    }
  }
  return out;
}

NodePtr Checker::matrix(const NodePtr& node) {
  if (!node->is_map()) {
    return wrong(*node,
                 fmt::format("expected a map from key paths to lists, got {}", kind_name(*node)));
  }
  auto out = std::make_shared<Node>(*node);
  out->entries.clear();
  for (const Node::Entry& entry : node->entries) {
    const auto target = find_key_path(entry.key);
    if (!target.field) {
      wrong_at(entry.place, child_path(*node, entry.key), target.why);
      continue;
    }
    Field values;
    values.name = entry.key;
    values.type = Type::kList;
    values.min_items = 1;
    values.max_items = 64;
    values.fields = {*target.field};
    if (NodePtr good = check(entry.value, values)) {
      out->entries.push_back({entry.key, entry.place, std::move(good)});
    }
  }
  return out;
}

}  // namespace warmgate::scenario
