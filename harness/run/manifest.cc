#include "harness/run/manifest.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "harness/scenario/problems.h"
#include "harness/scenario/scenario.h"

namespace warmgate::run {
namespace {

namespace fs = std::filesystem;
using scenario::Problem;
using scenario::ScenarioError;

constexpr std::uintmax_t kLargestManifest = 4 << 20;
constexpr int kDeepest = 32;
constexpr std::size_t kMostNodes = 200000;

class Reader {
 public:
  explicit Reader(fs::path file) : file_(std::move(file)) {}

  std::vector<Pod> read() {
    std::error_code failed;
    if (!fs::is_regular_file(file_, failed))
      refuse(YAML::Mark::null_mark(), "there is no such file");
    if (fs::file_size(file_, failed) > kLargestManifest)
      refuse(YAML::Mark::null_mark(), "is larger than 4 MiB");
    std::ifstream in(file_, std::ios::binary);
    std::stringstream text;
    text << in.rdbuf();
    const std::string all = text.str();
    if (const std::size_t at = all.find("{{"); at != all.npos && all.find("}}", at) != all.npos) {
      const int line =
          static_cast<int>(std::count(all.begin(), all.begin() + static_cast<long>(at), '\n'));
      throw ScenarioError({{file_.string(), line + 1, 1, "",
                            "this is a template; give the rendered manifest (helm template …)"}});
    }
    std::vector<YAML::Node> documents;
    try {
      documents = YAML::LoadAll(all);
      for (const YAML::Node& document : documents) {
        if (document.IsMap()) walk(document, document, 0);
      }
    } catch (const YAML::Exception& error) {
      refuse(error.mark, "is no YAML that can be read: " + error.msg);
    }
    if (pods_.empty()) refuse(YAML::Mark::null_mark(), "holds no containers");
    return std::move(pods_);
  }

 private:
  [[noreturn]] void refuse(const YAML::Mark& mark, const std::string& why) const {
    const bool known = mark.line >= 0 && !mark.is_null();
    throw ScenarioError(
        {{file_.string(), known ? mark.line + 1 : 0, known ? mark.column + 1 : 0, "", why}});
  }

  // Anything may hold a pod's spec: a List, a Job of a CronJob, a custom resource.
  void walk(const YAML::Node& node, const YAML::Node& document, int depth) {
    if (++nodes_ > kMostNodes || depth > kDeepest)
      refuse(node.Mark(), "is nested too deeply, or its aliases are too many");
    if (node.IsSequence()) {
      for (const YAML::Node& item : node) walk(item, document, depth + 1);
      return;
    }
    if (!node.IsMap()) return;
    // The nearest thing that has a kind is what the pod belongs to.
    const bool named = node["kind"] && node["kind"].IsScalar();
    const YAML::Node owner = named ? node : document;
    if (node["containers"] && node["containers"].IsSequence()) {
      pod(node, owner);
      return;
    }
    for (const auto& entry : node) walk(entry.second, owner, depth + 1);
  }

  static std::string text(const YAML::Node& parent, const char* key) {
    const YAML::Node node = parent[key];
    return node && node.IsScalar() ? node.Scalar() : "";
  }

  std::optional<double> number(const YAML::Node& parent, const char* key) const {
    const YAML::Node node = parent[key];
    if (!node || node.IsNull()) return std::nullopt;
    const std::string digits = node.IsScalar() ? node.Scalar() : "";
    // A quoted scalar has the tag "!", and Kubernetes refuses a text where it wants a number.
    if (node.IsScalar() && node.Tag() == "!")
      refuse(node.Mark(), fmt::format("{}: is the text {}; expected a number, without quotes", key,
                                      scenario::shown(digits)));
    if (digits.empty() || digits.size() > 9 ||
        digits.find_first_not_of("0123456789") != std::string::npos)
      refuse(node.Mark(), fmt::format("{}: expected a whole number of at most nine digits", key));
    return std::stod(digits);
  }

  // A key that is none of `known`. Fields come and go with versions of Kubernetes, so that where
  // `strict` is not set only what looks like a slip is refused.
  void check_keys(const YAML::Node& node, const std::string& what,
                  const std::vector<std::string>& known, bool strict) const {
    for (const auto& entry : node) {
      const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "";
      if (std::find(known.begin(), known.end(), key) != known.end()) continue;
      if (!strict && !scenario::nearest(key, known)) continue;
      refuse(entry.first.Mark(), fmt::format("{}: no field of {}{}", scenario::shown(key), what,
                                             scenario::did_you_mean(key, known)));
    }
  }

  // Custom resources hold pods too; what calls itself Kubernetes' own must be one of these.
  void check_kind(const YAML::Node& owner) const {
    static const std::vector<std::string> kOwn = {
        "Pod",        "PodTemplate", "ReplicationController",
        "Deployment", "StatefulSet", "DaemonSet",
        "ReplicaSet", "Job",         "CronJob"};
    const std::string kind = text(owner, "kind"), api = text(owner, "apiVersion");
    const bool own =
        api.empty() || api == "v1" || api.starts_with("apps/") || api.starts_with("batch/");
    if (kind.empty() || !own || std::find(kOwn.begin(), kOwn.end(), kind) != kOwn.end()) return;
    refuse(owner["kind"].Mark(),
           fmt::format("kind: is {}, which {} does not have with containers; known are {}{}",
                       scenario::shown(kind), api.empty() ? "Kubernetes" : api,
                       scenario::list_of(kOwn), scenario::did_you_mean(kind, kOwn)));
  }

  Probe probe(const YAML::Node& container, const char* key) const {
    const YAML::Node node = container[key];
    Probe out;
    if (!node || node.IsNull()) return out;
    if (!node.IsMap()) refuse(node.Mark(), fmt::format("{}: expected a mapping", key));
    check_keys(
        node, key,
        {"httpGet", "exec", "tcpSocket", "grpc", "initialDelaySeconds", "periodSeconds",
         "timeoutSeconds", "successThreshold", "failureThreshold", "terminationGracePeriodSeconds"},
        true);
    out.there = true;
    out.line = node.Mark().line + 1;
    // The key stands on the line before its block.
    for (const auto& entry : container) {
      if (entry.first.IsScalar() && entry.first.Scalar() == key)
        out.line = entry.first.Mark().line + 1;
    }
    out.initial_delay_s = number(node, "initialDelaySeconds").value_or(0);
    out.period_s = number(node, "periodSeconds").value_or(10);
    out.timeout_s = number(node, "timeoutSeconds").value_or(1);
    out.failures = number(node, "failureThreshold").value_or(3);
    if (out.period_s < 1 || out.failures < 1)
      refuse(node.Mark(), fmt::format("{}: periodSeconds and failureThreshold begin at 1", key));
    return out;
  }

  void pod(const YAML::Node& spec, const YAML::Node& owner) {
    check_kind(owner);
    // Those that are near to others in name, and what this program reads.
    check_keys(spec, "a pod",
               {"containers", "initContainers", "ephemeralContainers",
                "terminationGracePeriodSeconds", "activeDeadlineSeconds"},
               false);
    Pod out;
    out.kind = text(owner, "kind");
    if (owner["metadata"] && owner["metadata"].IsMap()) out.name = text(owner["metadata"], "name");
    for (const char* list : {"containers", "initContainers"}) {
      if (!spec[list] || !spec[list].IsSequence()) continue;
      for (const YAML::Node& node : spec[list]) {
        if (!node.IsMap()) refuse(node.Mark(), fmt::format("{}: expected mappings", list));
        check_keys(node, "a container",
                   {"name",
                    "image",
                    "command",
                    "args",
                    "workingDir",
                    "ports",
                    "env",
                    "envFrom",
                    "resources",
                    "volumeMounts",
                    "volumeDevices",
                    "lifecycle",
                    "startupProbe",
                    "livenessProbe",
                    "readinessProbe",
                    "securityContext",
                    "stdin",
                    "stdinOnce",
                    "tty",
                    "restartPolicy",
                    "restartPolicyRules",
                    "resizePolicy",
                    "imagePullPolicy",
                    "terminationMessagePath",
                    "terminationMessagePolicy"},
                   false);
        Container one;
        one.name = text(node, "name");
        one.line = node.Mark().line + 1;
        one.startup = probe(node, "startupProbe");
        one.liveness = probe(node, "livenessProbe");
        one.readiness = probe(node, "readinessProbe");
        out.containers.push_back(std::move(one));
      }
    }
    out.grace_s = number(spec, "terminationGracePeriodSeconds");
    if (out.grace_s) out.grace_line = spec["terminationGracePeriodSeconds"].Mark().line + 1;
    if (owner["spec"] && owner["spec"].IsMap()) {
      check_keys(owner["spec"], "its spec",
                 {"progressDeadlineSeconds", "terminationGracePeriodSeconds"}, false);
      out.progress_deadline_s = number(owner["spec"], "progressDeadlineSeconds");
      if (out.progress_deadline_s)
        out.progress_line = owner["spec"]["progressDeadlineSeconds"].Mark().line + 1;
    }
    pods_.push_back(std::move(out));
  }

  fs::path file_;
  std::vector<Pod> pods_;
  std::size_t nodes_ = 0;
};

std::string full_name(const Pod& pod, const Container& container) {
  std::string out = pod.kind.empty() ? "pod" : pod.kind;
  if (!pod.name.empty()) out += " " + pod.name;
  return out + ", container " + (container.name.empty() ? "without a name" : container.name);
}

}  // namespace

std::vector<Pod> read_manifest(const fs::path& file) { return Reader(file).read(); }

std::vector<ManifestFinding> check_manifest(const fs::path& file, const std::vector<Pod>& pods,
                                            const ProbeValues& values,
                                            const std::string& container) {
  std::vector<std::pair<const Pod*, const Container*>> chosen;
  std::set<std::string> names;
  for (const Pod& pod : pods) {
    for (const Container& one : pod.containers) {
      names.insert(one.name);
      const bool judged = one.startup.there || one.liveness.there;
      if (container.empty() ? judged : one.name == container) chosen.emplace_back(&pod, &one);
    }
  }
  const auto refuse = [&](const std::string& why) {
    throw ScenarioError({{file.string(), 0, 0, "", why}});
  };
  const std::string listed = scenario::list_of({names.begin(), names.end()});
  if (!container.empty() && chosen.empty())
    refuse(fmt::format("no container {}; there are {}", container, listed));
  if (container.empty() && chosen.size() > 1) {
    const std::string& first = chosen.front().second->name;
    for (const auto& [pod, one] : chosen) {
      // The same container in several documents is judged in each.
      if (one->name != first)
        refuse(fmt::format("several containers have probes; choose one of {} with --container",
                           listed));
    }
  }

  using Kind = ManifestFinding::State;
  std::vector<ManifestFinding> out;
  const auto say = [&](Kind state, int line, std::string text) {
    out.push_back({state, fmt::format("{}:{}", file.string(), line), std::move(text)});
  };
  const double need = values.ready.p99;
  const std::string measured = fmt::format(
      "{} {:.1f} s (n = {})", values.ready.is_worst ? "the slowest start took" : "p99 is", need,
      values.ready.n);
  if (chosen.empty()) {
    for (const Pod& pod : pods) {
      for (const Container& one : pod.containers)
        say(Kind::kNote, one.line,
            full_name(pod, one) +
                ": no startup and no liveness probe, so that nothing ends a slow "
                "start");
    }
  }
  for (const auto& [pod, one] : chosen) {
    const Probe& probe = one->startup.there ? one->startup : one->liveness;
    const std::string name = full_name(*pod, *one);
    if (!probe.there) {
      say(Kind::kNote, one->line,
          name + ": no startup and no liveness probe, so that nothing ends a slow start");
    } else {
      const std::string budget =
          fmt::format("{}: the {} allows {:g} s ({:g} + {:g} x {:g})", name,
                      one->startup.there ? "startupProbe" : "livenessProbe", probe.budget_s(),
                      probe.initial_delay_s, probe.failures, probe.period_s);
      if (need > probe.budget_s()) {
        say(Kind::kTooShort, probe.line,
            fmt::format("{}, {}: it is killed {:.1f} s too early", budget, measured,
                        need - probe.budget_s()));
      } else {
        say(Kind::kOk, probe.line, budget + ", " + measured);
        if (need > probe.budget_s() - probe.period_s)
          say(Kind::kNote, probe.line, fmt::format("{}: less than one period is left", name));
        if (!one->startup.there)
          say(Kind::kNote, probe.line,
              name +
                  ": the liveness probe guards the start too; a startupProbe lets it be strict "
                  "afterwards");
      }
    }
    if (pod->progress_deadline_s && need > *pod->progress_deadline_s)
      say(Kind::kTooShort, pod->progress_line,
          fmt::format("{}: progressDeadlineSeconds is {:g} s, {}", name, *pod->progress_deadline_s,
                      measured));
    if (!pod->progress_deadline_s && pod->kind == "Deployment" && need > 600)
      say(Kind::kNote, one->line,
          name + ": progressDeadlineSeconds is not set, and its default is 600 s; " + measured);
    if (values.grace_measured && pod->grace_s && *pod->grace_s < values.grace_s)
      say(Kind::kNote, pod->grace_line,
          fmt::format("{}: terminationGracePeriodSeconds is {:g}, advised are {}", name,
                      *pod->grace_s, values.grace_s));
  }
  return out;
}

}  // namespace warmgate::run
