// From a file to a Scenario. Everything that is wrong is collected on the way and thrown together.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "harness/scenario/artefact_reader.h"
#include "harness/scenario/assemble.h"
#include "harness/scenario/assemble_server.h"
#include "harness/scenario/files.h"
#include "harness/scenario/identity.h"
#include "harness/scenario/judge.h"
#include "harness/scenario/layers.h"
#include "harness/scenario/overlay.h"
#include "harness/scenario/places.h"
#include "harness/scenario/validate.h"

namespace warmgate::scenario {

namespace fs = std::filesystem;

fs::path Scenario::accepted_path() const {
  fs::path out = path;
  const auto extension = out.extension();
  if (extension == ".yaml" || extension == ".yml") out.replace_extension();
  out += ".accepted.json";
  return out;
}

namespace {

// Problems of single variants: equal ones become one, which names the variants unless it is all.
class PerVariant {
 public:
  void begin(const std::string& variant) {
    variant_ = variant;
    ++variants_;
  }
  Report report() {
    return [this](const Place& place, const std::string& path, const std::string& message) {
      const auto same = [&](const Found& f) {
        return f.place.line == place.line && f.place.column == place.column && f.path == path &&
               f.message == message;
      };
      auto it = std::find_if(found_.begin(), found_.end(), same);
      if (it == found_.end()) it = found_.insert(found_.end(), Found{place, path, message, {}});
      if (it->variants.empty() || it->variants.back() != variant_) {
        it->variants.push_back(variant_);
      }
    };
  }
  void flush(Problems& problems) const {
    for (const Found& found : found_) {
      const bool everywhere = found.variants.size() == variants_;
      problems.add(
          found.place, found.path,
          found.message + (everywhere ? "" : " (variant " + list_of(found.variants) + ")"));
    }
  }

 private:
  struct Found {
    Place place;
    std::string path, message;
    std::vector<std::string> variants;
  };
  std::vector<Found> found_;
  std::string variant_;
  std::size_t variants_ = 0;
};

class Loader {
 public:
  Loader(const fs::path& file, const LoadOptions& options)
      : file_(file),
        options_(options),
        vocabulary_(Vocabulary::with(options)),
        checker_(problems_, vocabulary_, tainted_),
        files_(find_fixtures(options.fixtures), problems_, vocabulary_, tainted_) {}

  Scenario load() {
    check_options();
    std::error_code error;
    fs::path canonical = fs::weakly_canonical(file_, error);
    // A circle of links, or a folder that may not be entered: opening it says what it is.
    if (error) canonical = fs::absolute(file_, error);
    files_.set_tree(canonical);
    tree_ = read_chain(canonical, file_.string(), true);
    if (!tree_) problems_.throw_if_any();

    Scenario out;
    out.path = file_;
    describe(out);
    const auto sets = read_sets(options_.overlays, tree_, checker_, problems_);
    const auto plans = plan_variants(tree_, problems_);
    VariantNames names;
    names.from_file = tree_->find("variants") != nullptr;
    for (const Plan& plan : plans) {
      names.full.push_back(plan.name);
      if (names.base.empty() || names.base.back() != plan.base_name) {
        names.base.push_back(plan.base_name);
      }
    }
    check_variant_names(tree_, names, problems_);
    for (const Plan& plan : plans) out.variants.push_back(build(plan, sets));
    per_variant_.flush(problems_);
    problems_.throw_if_any();
    out.files = chain_;
    out.files.insert(out.files.end(), files_.read().begin(), files_.read().end());
    return out;
  }

 private:
  void check_options() {
    const std::vector<std::string> devices = {"meta", "cpu", "cuda"};
    if (options_.device.empty() ||
        std::find(devices.begin(), devices.end(), options_.device) != devices.end()) {
      return;
    }
    problems_.add(Place{std::make_shared<const std::string>("--device"), 0, 0}, "",
                  "no device " + shown(options_.device) + "; there are " + list_of(devices));
  }

  // The checked tree of a file, laid on that of the one it extends.
  NodePtr read_chain(const fs::path& canonical, const std::string& shown_as, bool leaf) {
    chain_.push_back(canonical);
    files_.know(shown_as, canonical);
    NodePtr tree = read_yaml(canonical, shown_as, problems_);
    if (tree) tree = checker_.check(tree, scenario_field(), "", true);
    if (!tree) return nullptr;
    if (leaf && !tree->find("scenario")) {
      problems_.add(
          tree->place, "scenario",
          "missing; the name of the scenario (a file without one is a base for `extends`)");
    }
    const NodePtr extends = tree->find("extends");
    if (!extends) return tree;
    const auto parent = files_.inside_tree(*extends);
    if (!parent) return tree;
    const auto again = std::find(chain_.begin(), chain_.end(), *parent);
    if (again != chain_.end()) {
      std::string cycle;
      for (auto it = again; it != chain_.end(); ++it) cycle += it->filename().string() + " → ";
      problems_.add(*extends, "a cycle: " + cycle + parent->filename().string());
      return tree;
    }
    if (chain_.size() > kMostParents) {
      problems_.add(*extends, fmt::format("more than {} scenarios deep", kMostParents));
      return tree;
    }
    const NodePtr below = read_chain(*parent, display(*parent), false);
    return merge(without(below, {"scenario", "extends"}), without(tree, {"extends"}),
                 &scenario_field());
  }

  void describe(Scenario& out) {
    const auto text = [&](const char* key) {
      const NodePtr node = tree_->find(key);
      return node ? node->text : std::string();
    };
    const auto list = [&](const char* key) {
      const NodePtr node = tree_->find(key);
      return node ? to_json(*node, *scenario_field().find(key)).get<std::vector<std::string>>()
                  : std::vector<std::string>();
    };
    out.name = text("scenario");
    out.about = text("about");
    if (const NodePtr source = tree_->find("source")) {
      out.source = to_json(*source, *scenario_field().find("source"));
    }
    out.tags = list("tags");
    out.touches = list("touches");
    check_globs(tree_->find("touches"), problems_);
    out.positions = positions_of(tree_);
    out.gate = gate_of(tree_, vocabulary_, problems_);
    out.allow = allow_of(tree_);
    out.needs = needs_of(tree_);
  }

  Variant build(const Plan& plan, const std::vector<SetOverlay>& sets) {
    Variant out;
    out.name = plan.name;
    out.base_name = plan.base_name;
    per_variant_.begin(plan.name);
    const Merged merged = merge_layers(tree_, plan, sets, options_.device, files_);
    out.behaviours = merged.behaviours;
    out.target = assemble_target(merged.tree, fs::absolute(file_).parent_path().string());
    out.artefact = assemble_artefact(merged.tree);
    check_artefact(out.artefact, out.target, merged.tree, per_variant_.report());
    out.expect = expectation_of(tree_, plan.base_name, plan.name, merged.device, vocabulary_);
    if (out.target.server) {
      build_server(out, merged);
    } else if (out.target.kind == Target::Kind::kCommand) {
      build_command(out, merged);
    } else {
      build_native(out, merged);
    }
    out.origins = origins(merged.tree);
    name_alike(out.origins);
    if (problems_.empty()) out.identity = identity(out.ranks, out.target);
    put_command(out.artefact, out.target);
    return out;
  }

  // resolved.h calls a few values otherwise than the language does; both names have the origin.
  static void name_alike(std::map<std::string, std::string>& origins) {
    static constexpr std::pair<const char*, const char*> kAlike[] = {
        {"device", "target.native.device"},
        {"collective_deadline_ms", "parallel.collective_deadline"},
        {"model.name", "model.preset"},
        {"workload.groups", "workload.requests"}};
    for (const auto& [resolved, written] : kAlike) {
      const auto it = origins.find(written);
      if (it != origins.end()) origins.emplace(resolved, it->second);
    }
  }

  void build_native(Variant& out, const Merged& merged) {
    const Resolved first = assemble(rank_tree(merged.tree, 0), merged.device);
    if (!merged.tree->find("model") && tainted_.count("model") == 0) {
      report_missing_model(merged.tree);
    }
    for (std::int64_t rank = 0; rank < first.parallel.tp; ++rank) {
      const NodePtr tree = rank_tree(merged.tree, rank);
      out.ranks.push_back(assemble(tree, merged.device));
      const bool alike = rank > 0 && !at(merged.tree, {"ranks", std::to_string(rank)});
      if (merged.tree->find("model") && !alike) {
        validate(out.ranks.back(), tree, tainted_, per_variant_.report());
      }
    }
    const NodePtr ranks = merged.tree->find("ranks");
    for (const Node::Entry& entry : ranks ? ranks->entries : std::vector<Node::Entry>{}) {
      if (merged.tree->find("ranks") && std::stoll(entry.key) < first.parallel.tp) continue;
      per_variant_.report()(
          entry.place, entry.value->path,
          fmt::format("there is no rank {}; tp is {}", entry.key, first.parallel.tp));
    }
    const NodePtr drafter = at(merged.tree, {"drafter"});
    if (!first.drafter.active() && drafter && !drafter->find("method"))
      check_idle_drafter(*drafter);
  }

  // Keys of a drafter that is none: fine from a behaviour, a mistake in a scenario.
  void check_idle_drafter(const Node& drafter) {
    if (tainted_.count("drafter") > 0) return;
    for (const Node::Entry& entry : drafter.entries) {
      if (entry.value->layer && entry.value->layer->rfind("behaviour ", 0) == 0) continue;
      per_variant_.report()(entry.place, entry.value->path,
                            "there is no drafter; give drafter.method dspark or mtp");
      return;
    }
  }

  void report_missing_model(const NodePtr& tree) {
    per_variant_.report()(tree->place, "model",
                          "missing; a native target needs a model, such as {preset: small-flash}");
  }

  // A command has no ranks of ours and needs no model; given one, contracts judge against it.
  void build_command(Variant& out, const Merged& merged) {
    out.ranks.push_back(assemble(rank_tree(merged.tree, 0), ""));
    if (out.target.argv.empty() && out.artefact.command.empty() && tainted_.count("target") == 0) {
      const Node& node = nearest_node(merged.tree, {"target", "command"});
      per_variant_.report()(node.place, node.path + ".argv", "missing; program and arguments");
    }
    check_foreign(out, merged, "a command");
  }

  void build_server(Variant& out, const Merged& merged) {
    out.ranks.push_back(assemble(rank_tree(merged.tree, 0), ""));
    const NodePtr server = at(merged.tree, {"target", "server"});
    if (const NodePtr preset = server->find("preset")) files_.server_preset(*preset);
    if (tainted_.count("target") == 0) {
      validate_server(*out.target.server, *server, merged.tree->find("workload"),
                      per_variant_.report());
    }
    check_foreign(out, merged, "a server");
  }

  // What is not our engine: a model is what its contracts are judged against, no more.
  void check_foreign(const Variant& out, const Merged& merged, const std::string& what) {
    if (merged.tree->find("model")) {
      validate(out.ranks.back(), merged.tree, tainted_, per_variant_.report());
    }
    const NodePtr probe = merged.tree->find("probe_keys");
    if (probe && probe->text == "true") {
      per_variant_.report()(
          probe->place, probe->path,
          fmt::format("keys are probed by our own engine; {} launches what it likes", what));
    }
  }

  static constexpr std::size_t kMostParents = 16;

  fs::path file_;
  const LoadOptions& options_;
  Problems problems_;
  Vocabulary vocabulary_;
  Tainted tainted_;
  Checker checker_;
  Files files_;
  PerVariant per_variant_;
  NodePtr tree_;
  std::vector<fs::path> chain_;
};

}  // namespace

Scenario load_scenario(const fs::path& file, const LoadOptions& options) {
  return Loader(file, options).load();
}

}  // namespace warmgate::scenario
