#include "harness/scenario/artefact_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "harness/scenario/check.h"
#include "harness/scenario/safe_values.h"

namespace warmgate::scenario {
namespace {

using nlohmann::json;

json artefact_section(const NodePtr& tree, std::string_view name) {
  const NodePtr node = tree->find(name);
  return node ? to_json(*node, *overlay_field().find(name)) : json();
}

std::vector<std::string> text_list(const json& from, const char* key) {
  return from.value(key, json::array()).get<std::vector<std::string>>();
}

WheelSource wheel_of(const json& from) {
  WheelSource out;
  out.path = from.value("path", "");
  out.url = from.value("url", "");
  out.commit = from.value("commit", "");
  out.from = from.value("from", "");
  out.sha256 = from.value("sha256", "");
  out.python = from.value("python", "");
  out.pip = text_list(from, "pip");
  std::transform(out.sha256.begin(), out.sha256.end(), out.sha256.begin(),
                 [](char c) { return c >= 'A' && c <= 'F' ? static_cast<char>(c + 32) : c; });
  return out;
}

bool is_hex(std::string_view text, std::size_t least, std::size_t most) {
  return text.size() >= least && text.size() <= most &&
         text.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
}

bool has_scheme(std::string_view url, std::initializer_list<std::string_view> schemes) {
  return std::any_of(schemes.begin(), schemes.end(), [&](std::string_view scheme) {
    return url.size() > scheme.size() && url.substr(0, scheme.size()) == scheme;
  });
}

class Judge {
 public:
  Judge(const NodePtr& tree, const Report& report) : tree_(tree), report_(report) {}

  void wrong(const std::vector<std::string>& keys, const std::string& message) const {
    const Node& node = nearest_node(tree_, keys);
    report_(node.place, node.path.empty() ? keys.back() : node.path, message);
  }

  // A value that is handed to a program as one word. Beginning with '-' it would be an option.
  // A file of such a name is there as ./-name.
  bool word(const std::vector<std::string>& keys, const std::string& value,
            std::string_view what) const {
    if (value.empty()) {
      wrong(keys, fmt::format("empty; {}", what));
    } else if (has_control(value)) {
      wrong(keys, fmt::format("{} holds control characters", shown(value)));
    } else if (value.front() == '-') {
      wrong(keys, fmt::format("{} begins with '-', so a program would take it for an option; {}",
                              shown(value), what));
    } else {
      return true;
    }
    return false;
  }

  void wheel(std::vector<std::string> keys, const WheelSource& wheel) const {
    const auto at = [&](const char* key) {
      std::vector<std::string> out = keys;
      out.emplace_back(key);
      return out;
    };
    if (wheel.path.empty() && wheel.url.empty() && wheel.commit.empty())
      wrong(keys, "names no wheel; give path, url with sha256, or commit");
    if (!wheel.path.empty()) word(at("path"), wheel.path, "a file that ends in .whl");
    if (!wheel.sha256.empty() && !is_hex(wheel.sha256, 64, 64))
      wrong(at("sha256"), fmt::format("expected 64 hex digits, got {}", shown(wheel.sha256)));
    if (!wheel.url.empty()) {
      if (!has_scheme(wheel.url, {"https://", "http://", "file:///"}) || has_control(wheel.url))
        wrong(at("url"),
              fmt::format("expected https://…, http://… or file:///…, got {}", shown(wheel.url)));
      if (wheel.sha256.empty())
        wrong(keys, "url needs sha256: what is downloaded has to be what was meant");
    }
    if (!wheel.commit.empty() && !is_hex(wheel.commit, 7, 64))
      wrong(at("commit"), fmt::format("expected 7 to 64 hex digits of a commit, got {}; a branch "
                                      "or tag does not name one wheel",
                                      shown(wheel.commit)));
    if (!wheel.from.empty() &&
        (!has_scheme(wheel.from, {"https://", "file:///"}) || has_control(wheel.from) ||
         wheel.from.find("{commit}") == std::string::npos))
      wrong(at("from"),
            fmt::format("expected https://… with {{commit}} in it, got {}", shown(wheel.from)));
    if (!wheel.from.empty() && wheel.commit.empty())
      wrong(at("from"), "without commit there is nothing to put into it");
    if (!wheel.python.empty()) word(at("python"), wheel.python, "name or path of an interpreter");
  }

  void image(const ImageSource& image) const {
    if (!word({"image", "name"}, image.name, "a reference such as repository:tag")) return;
    const auto plain = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             std::string_view("._-/:@").find(c) != std::string_view::npos;
    };
    if (!std::all_of(image.name.begin(), image.name.end(), plain))
      wrong({"image", "name"}, fmt::format("{} is no reference of an image", shown(image.name)));
  }

  void worktree(const WorktreeSource& tree) const {
    word({"worktree", "revision"}, tree.revision, "a commit, tag or branch");
    if (tree_->find("worktree")->find("repo"))
      word({"worktree", "repo"}, tree.repo, "a repository");
    if (!tree.built_from.empty())
      word({"worktree", "native", "built_from"}, tree.built_from, "a commit");
    if (const NodePtr native = tree_->find("worktree")->find("native")) {
      if (native->find("venv"))
        word({"worktree", "native", "venv"}, tree.venv, "the folder of a virtual environment");
      if (native->find("wheel")) wheel({"worktree", "native", "wheel"}, tree.wheel);
      if (!native->find("wheel") && !native->find("venv"))
        wrong({"worktree", "native"}, "names no environment; give venv or wheel");
    }
    if (!tree.package.empty() && !is_distribution(tree.package))
      wrong({"worktree", "package"},
            fmt::format("{} is no name of a distribution", shown(tree.package)));
    for (const std::string& item : tree.native_paths)
      word({"worktree", "native_paths"}, item, "a glob of the repository");
    for (const auto* list : {&tree.python_path, &tree.native_files}) {
      const char* key = list == &tree.python_path ? "python_path" : "native_files";
      for (const std::string& item : *list) {
        const bool leaves = item.empty() || item.front() == '/' || item == ".." ||
                            item.rfind("../", 0) == 0 || item.find("/../") != std::string::npos ||
                            (item.size() > 3 && item.rfind("/..") == item.size() - 3);
        if (leaves || has_control(item))
          wrong({"worktree", key}, fmt::format("{} leads out of the revision", shown(item)));
      }
    }
  }

 private:
  const NodePtr& tree_;
  const Report& report_;
};

}  // namespace

std::string_view to_string(Artefact::Kind kind) {
  switch (kind) {
    case Artefact::Kind::kNone:
      return "";
    case Artefact::Kind::kCommand:
      return "command";
    case Artefact::Kind::kVenv:
      return "venv";
    case Artefact::Kind::kWheel:
      return "wheel";
    case Artefact::Kind::kImage:
      return "image";
    case Artefact::Kind::kWorktree:
      return "worktree";
  }
  return "";
}

Artefact assemble_artefact(const NodePtr& tree) {
  using Kind = Artefact::Kind;
  Artefact out;
  if (const json command = artefact_section(tree, "command"); command.is_array()) {
    out.kind = Kind::kCommand;
    out.command = command.get<std::vector<std::string>>();
  }
  if (const json venv = artefact_section(tree, "venv"); venv.is_string()) {
    out.kind = Kind::kVenv;
    out.venv = venv.get<std::string>();
  }
  if (const json wheel = artefact_section(tree, "wheel"); wheel.is_object()) {
    out.kind = Kind::kWheel;
    out.wheel = wheel_of(wheel);
  }
  if (const json image = artefact_section(tree, "image"); image.is_object()) {
    out.kind = Kind::kImage;
    out.image.name = image.value("name", "");
    out.image.engine = image.value("engine", "");
    out.image.run = text_list(image, "run");
    out.image.list_packages = image.value("list_packages", false);
  }
  if (const json worktree = artefact_section(tree, "worktree"); worktree.is_object()) {
    out.kind = Kind::kWorktree;
    WorktreeSource& to = out.worktree;
    to.revision = worktree.value("revision", "");
    to.repo = worktree.value("repo", "");
    to.package = worktree.value("package", "");
    to.native_paths = text_list(worktree, "native_paths");
    to.native_files = text_list(worktree, "native_files");
    to.python_path = text_list(worktree, "python_path");
    const json native = worktree.value("native", json::object());
    to.venv = native.value("venv", "");
    to.built_from = native.value("built_from", "");
    if (native.contains("wheel")) to.wheel = wheel_of(native["wheel"]);
  }
  return out;
}

void check_artefact(const Artefact& artefact, const Target& target, const NodePtr& tree,
                    const Report& report) {
  using Kind = Artefact::Kind;
  if (artefact.empty()) return;
  const Judge judge(tree, report);
  const std::string key(to_string(artefact.kind));
  if (target.kind == Target::Kind::kNative) {
    judge.wrong({key}, fmt::format("{} is what a command or server target is started from; this "
                                   "target is native, warmgate's own engine",
                                   key));
    return;
  }
  if (!artefact.command.empty() && artefact.command.front().empty())
    judge.wrong({"command"}, "the first word names the program; it is empty");
  if (!artefact.command.empty() && target.server && target.server->members.size() > 1)
    judge.wrong({"command"},
                "this server has several members; change target.server.members.NAME.command");
  switch (artefact.kind) {
    case Kind::kNone:
    case Kind::kCommand:
      break;
    case Kind::kVenv:
      judge.word({"venv"}, artefact.venv, "the folder of a virtual environment");
      break;
    case Kind::kWheel:
      judge.wheel({"wheel"}, artefact.wheel);
      break;
    case Kind::kImage:
      judge.image(artefact.image);
      break;
    case Kind::kWorktree:
      judge.worktree(artefact.worktree);
      break;
  }
}

std::string bare_url(const std::string& url) {
  std::string out = url.substr(0, url.find_first_of("?#"));
  const std::size_t begin = out.find("://");
  if (begin == std::string::npos) return out;
  const std::size_t end = std::min(out.find('/', begin + 3), out.size());
  const std::size_t at = out.substr(0, end).rfind('@');
  if (at != std::string::npos && at > begin) out.erase(begin + 3, at + 1 - (begin + 3));
  return out;
}

nlohmann::json describe(const Artefact& artefact) {
  using Kind = Artefact::Kind;
  const auto wheel = [](const WheelSource& from) {
    json out = json::object();
    if (!from.path.empty()) out["path"] = from.path;
    if (!from.url.empty()) out["url"] = bare_url(from.url);
    if (!from.commit.empty()) out["commit"] = from.commit;
    if (!from.from.empty()) out["from"] = bare_url(from.from);
    if (!from.sha256.empty()) out["sha256"] = from.sha256;
    if (!from.python.empty()) out["python"] = from.python;
    if (!from.pip.empty()) out["pip_arguments"] = from.pip.size();
    return out;
  };
  json out = {{"kind", to_string(artefact.kind)}};
  switch (artefact.kind) {
    case Kind::kNone:
    case Kind::kCommand:
      break;
    case Kind::kVenv:
      out["venv"] = artefact.venv;
      break;
    case Kind::kWheel:
      out["wheel"] = wheel(artefact.wheel);
      break;
    case Kind::kImage:
      out["image"] = {{"name", artefact.image.name},
                      {"list_packages", artefact.image.list_packages}};
      if (!artefact.image.engine.empty()) out["image"]["engine"] = artefact.image.engine;
      if (!artefact.image.run.empty()) out["image"]["run_arguments"] = artefact.image.run.size();
      break;
    case Kind::kWorktree: {
      const WorktreeSource& from = artefact.worktree;
      json& tree = out["worktree"] = {{"revision", from.revision}};
      if (!from.repo.empty()) tree["repo"] = from.repo;
      if (!from.venv.empty()) tree["native"]["venv"] = from.venv;
      if (from.has_prebuilt() && from.venv.empty()) tree["native"]["wheel"] = wheel(from.wheel);
      if (!from.built_from.empty()) tree["native"]["built_from"] = from.built_from;
      if (!from.package.empty()) tree["package"] = from.package;
      for (const auto& [key, list] : {std::pair{"native_paths", &from.native_paths},
                                      std::pair{"native_files", &from.native_files},
                                      std::pair{"python_path", &from.python_path}}) {
        if (!list->empty()) tree[key] = *list;
      }
      break;
    }
  }
  return out;
}

void put_command(const Artefact& artefact, Target& target) {
  if (artefact.command.empty()) return;
  if (target.kind == Target::Kind::kCommand) target.argv = artefact.command;
  if (target.server && target.server->members.size() == 1)
    target.server->members.front().argv = artefact.command;
}

}  // namespace warmgate::scenario
