#include "harness/scenario/places.h"

#include "harness/scenario/problems.h"

namespace warmgate::scenario {
namespace {

Position position(const Place& place) {
  return {place.file ? *place.file : std::string(), place.line, place.column};
}

// Why no path can match; "" if one can. Paths are those of git: from the root of the repository, no
// dots, no slash at either end.
std::string never(const std::string& glob) {
  if (glob.empty()) return "an empty pattern matches no file";
  if (glob.front() == '/') return "paths begin at the repository's root, without a slash";
  if (glob.front() == '!') return "patterns cannot be negated";
  if (glob.back() == '/') return "a folder is no file; for all in it write " + shown(glob + "**");
  if (glob.find_first_of("{}") != std::string::npos)
    return "braces stand for themselves; write one pattern for each choice";
  if (glob.find("//") != std::string::npos) return "no path has two slashes in a row";
  const std::string framed = "/" + glob + "/";
  for (const char* dots : {"/./", "/../"}) {
    if (framed.find(dots) != std::string::npos)
      return "no path has . or .. in it; write it from the repository's root";
  }
  return "";
}

}  // namespace

std::map<std::string, Position> positions_of(const NodePtr& tree) {
  std::map<std::string, Position> out;
  for (const Node::Entry& entry : tree->entries) {
    if (entry.key == "scenario") out[entry.key] = position(entry.place);
    if (entry.key != "variants" && entry.key != "expect" && entry.key != "gate") continue;
    for (const Node::Entry& inner : entry.value->entries)
      out[entry.key + "." + inner.key] = position(inner.place);
  }
  return out;
}

void check_globs(const NodePtr& touches, Problems& problems) {
  if (!touches) return;
  for (const NodePtr& item : touches->items) {
    const std::string why = item->is_scalar() ? never(item->text) : "";
    if (!why.empty()) problems.add(*item, shown(item->text) + ": " + why);
  }
}

}  // namespace warmgate::scenario
