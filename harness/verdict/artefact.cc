#include "harness/verdict/artefact.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace warmgate::verdict {
namespace {

using Json = nlohmann::ordered_json;
using Line = ArtefactDifference::Line;

constexpr std::size_t kShortHash = 12;

std::string short_hash(const std::string& hash) { return hash.substr(0, kShortHash); }

// What tells one installed package from another of the same name.
std::string state_of(const Package& package) {
  std::string out = package.version.empty() ? "no version" : package.version;
  if (package.editable) out += " editable";
  if (!package.origin.empty() && package.editable) out += " from " + package.origin;
  if (package.editable && !package.commit.empty()) out += " at " + short_hash(package.commit);
  return out;
}

using ByName = std::map<std::string, const Package*>;

ByName by_name(const std::vector<Package>& packages) {
  ByName out;
  for (const Package& package : packages) out.emplace(normal_name(package.name), &package);
  return out;
}

// One line where the two are not the same, files changed after the installation included: what is
// changed on both sides may be so in two ways, unless both are the one installation.
void compare(const std::string& name, const Package* a, const Package* b, bool one_place,
             std::vector<Line>& out) {
  if (a == nullptr || b == nullptr) {
    out.push_back({"package", name, a ? state_of(*a) : "", b ? state_of(*b) : ""});
    return;
  }
  std::string left = state_of(*a), right = state_of(*b);
  const bool other_files = a->digest != b->digest && !a->digest.empty() && !b->digest.empty();
  if (left == right && other_files) {
    left += " (files " + short_hash(a->digest) + ")";
    right += " (files " + short_hash(b->digest) + ")";
  }
  if (left != right) out.push_back({"package", name, left, right});
  const std::set<std::string> mine(a->changed.begin(), a->changed.end()),
      theirs(b->changed.begin(), b->changed.end());
  if (one_place && mine == theirs) return;
  std::set<std::string> all = mine;
  all.insert(theirs.begin(), theirs.end());
  for (const std::string& file : all) {
    out.push_back({"file", file, mine.count(file) > 0 ? "changed after installation" : "",
                   theirs.count(file) > 0 ? "changed after installation" : ""});
  }
}

void compare_packages(const ArtefactIdentity& a, const ArtefactIdentity& b,
                      ArtefactDifference& out) {
  if (!a.packages || !b.packages) {
    if (!a.packages && !b.packages && a.packages_why == b.packages_why) {
      if (!a.packages_why.empty()) out.not_observed.push_back("packages: " + a.packages_why);
      return;
    }
    const ArtefactIdentity& missing = a.packages ? b : a;
    out.not_observed.push_back(
        fmt::format("packages of {} {}: {}", missing.kind, missing.name,
                    missing.packages_why.empty() ? "none are listed" : missing.packages_why));
    return;
  }
  const ByName left = by_name(*a.packages), right = by_name(*b.packages);
  std::set<std::string> names;
  for (const auto& side : {left, right}) {
    for (const auto& [name, package] : side) names.insert(name);
  }
  const auto find = [](const ByName& side, const std::string& name) {
    const auto it = side.find(name);
    return it == side.end() ? nullptr : it->second;
  };
  for (const std::string& name : names) {
    const Package *l = find(left, name), *r = find(right, name);
    out.packages += l != nullptr && r != nullptr ? 1 : 0;
    compare(name, l, r, a.path == b.path && a.hash == b.hash, out.lines);
  }
}

void compare_variables(const ArtefactIdentity& a, const ArtefactIdentity& b,
                       ArtefactDifference& out) {
  std::set<std::string> names;
  for (const auto* side : {&a, &b}) {
    for (const auto& [name, value] : side->environment) names.insert(name);
  }
  for (const std::string& name : names) {
    const auto l = a.environment.find(name), r = b.environment.find(name);
    const bool here = l != a.environment.end(), there = r != b.environment.end();
    out.variables += here && there ? 1 : 0;
    if (here && there && l->second == r->second) continue;
    // Set to nothing is not the same as not set.
    const auto shown = [](const std::string& value) { return value.empty() ? "''" : value; };
    out.lines.push_back(
        {"variable", name, here ? shown(l->second) : "", there ? shown(r->second) : ""});
  }
}

}  // namespace

std::string normal_name(std::string_view package) {
  std::string out;
  for (char c : package) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
    if (c == '_' || c == '.') c = '-';
    if (c == '-' && !out.empty() && out.back() == '-') continue;
    out += c;
  }
  return out;
}

Json to_json(const ArtefactIdentity& identity) {
  Json out;
  out["kind"] = identity.kind;
  out["name"] = identity.name;
  out["path"] = identity.path;
  out["hash"] = identity.hash;
  out["version"] = identity.version;
  out["commit"] = identity.commit;
  out["python"] = identity.python;
  out["program"] = identity.program;
  out["command"] = identity.command;
  out["environment"] = identity.environment;
  if (identity.packages) {
    Json packages = Json::object();
    for (const auto& [name, package] : by_name(*identity.packages))
      packages[name] = state_of(*package);
    out["packages"] = std::move(packages);
  } else {
    out["packages"] = nullptr;
  }
  out["packages_why"] = identity.packages_why;
  out["notes"] = identity.notes;
  return out;
}

std::string identity_text(const ArtefactIdentity& identity, std::string_view dot) {
  std::string out = identity.kind + " " + identity.name;
  const auto add = [&](std::string_view word, const std::string& value) {
    if (!value.empty()) out += fmt::format("{}{}{}", dot, word, value);
  };
  add("", identity.version);
  add("commit ", short_hash(identity.commit));
  add("Python ", identity.python);
  add("hash ", short_hash(identity.hash));
  if (identity.path != identity.name) add("", identity.path);
  return out;
}

ArtefactDifference artefact_difference(const ArtefactIdentity& a, const ArtefactIdentity& b) {
  ArtefactDifference out;
  // One that was never made has no hash; a path that is asked for twice makes it no artefact.
  out.contents = !a.hash.empty() && !b.hash.empty();
  out.same_artefact = out.contents && a.kind == b.kind && a.path == b.path && a.hash == b.hash;
  if (a.python != b.python && (out.contents || (!a.python.empty() && !b.python.empty())))
    out.lines.push_back({"python", "python", a.python, b.python});
  if (a.commit != b.commit && !a.commit.empty() && !b.commit.empty())
    out.lines.push_back({"commit", "commit", short_hash(a.commit), short_hash(b.commit)});
  compare_packages(a, b, out);
  compare_variables(a, b, out);
  if (a.command != b.command) {
    out.lines.push_back({"command", "command", fmt::format("{}", fmt::join(a.command, " ")),
                         fmt::format("{}", fmt::join(b.command, " "))});
  }
  if (!out.contents) {
    const bool neither = a.hash.empty() && b.hash.empty();
    const ArtefactIdentity& missing = a.hash.empty() ? a : b;
    out.not_observed.push_back(
        neither ? std::string("contents: neither has a hash")
                : fmt::format("contents: {} {} has no hash", missing.kind, missing.name));
  } else if (a.hash != b.hash && out.lines.empty()) {
    // Programs, images and revisions may differ in files that no list names.
    out.lines.push_back({"contents", a.kind == b.kind ? a.kind : "artefact", short_hash(a.hash),
                         short_hash(b.hash)});
  }
  return out;
}

Json to_json(const ArtefactDifference& difference) {
  Json out;
  out["a"] = difference.a;
  out["b"] = difference.b;
  out["same_artefact"] = difference.same_artefact;
  Json lines = Json::array();
  for (const Line& line : difference.lines) {
    Json item;
    item["what"] = line.what;
    item["name"] = line.name;
    item["a"] = line.a.empty() ? Json(nullptr) : Json(line.a);
    item["b"] = line.b.empty() ? Json(nullptr) : Json(line.b);
    lines.push_back(std::move(item));
  }
  out["lines"] = std::move(lines);
  out["packages_compared"] = difference.packages;
  out["variables_compared"] = difference.variables;
  out["not_observed"] = difference.not_observed;
  return out;
}

}  // namespace warmgate::verdict
