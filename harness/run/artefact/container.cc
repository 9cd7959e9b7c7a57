// image: looked at through its engine, and the command that runs in it.
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <stdexcept>

#include "harness/run/artefact/build_step.h"
#include "harness/run/artefact/makers.h"
#include "harness/target/launch.h"

namespace warmgate::run {

using nlohmann::json;

namespace {

constexpr double kPullDeadline_s = 3600, kEngineDeadline_s = 120;
constexpr int kStopSeconds = 10;

std::string find_container_engine(const std::string& wish) {
  const char* path = std::getenv("PATH");
  for (const std::string name : {"docker", "podman"}) {
    if (!wish.empty() && wish != name) continue;
    const std::string found = target::find_program(name, path != nullptr ? path : "");
    if (found.find('/') != std::string::npos) return found;
  }
  throw BuildError(wish.empty() ? "there is neither docker nor podman in PATH; images need one"
                                : fmt::format("there is no {} in PATH", wish));
}

BuildStep engine_question(std::vector<std::string> argv, double deadline_s = kEngineDeadline_s) {
  BuildStep step;
  step.argv = std::move(argv);
  step.deadline_s = deadline_s;
  return step;
}

std::string text_at(const json& value, const char* key) {
  return value.is_object() && value.contains(key) && value[key].is_string()
             ? value[key].get<std::string>()
             : "";
}

json inspect_image(const std::string& engine, const std::string& name, const Store& store) {
  const auto ask = [&] {
    return output_of(engine_question({engine, "image", "inspect", "--", name}), store.cancel());
  };
  std::string answer;
  try {
    answer = ask();
  } catch (const BuildError& first) {
    if (store.cancel().cancelled()) throw;
    // Not there: fetched now, because nothing is fetched in a timed phase.
    const auto machine = store.machine();
    store.say("pulls image " + name);
    try {
      (void)output_of(engine_question({engine, "pull", "--", name}, kPullDeadline_s),
                      store.cancel());
    } catch (const BuildError& second) {
      if (store.cancel().cancelled()) throw;
      throw BuildError(fmt::format("image {} is not here ({}), and cannot be pulled: {}", name,
                                   first.what(), second.what()));
    }
    answer = ask();
  }
  const json all = json::parse(answer, nullptr, false);
  const json& one = all.is_array() && !all.empty() ? all[0] : all;
  const std::string id = text_at(one, "Id");
  const std::size_t from = id.rfind("sha256:", 0) == 0 ? 7 : 0;
  if (id.size() < from + 12 || id.find_first_not_of("0123456789abcdef", from) != id.npos)
    throw BuildError(fmt::format("{} says nothing of image {} that can be read", engine, name));
  return one;
}

// [[name, version], …] of what importlib finds in the image.
std::vector<verdict::Package> list_packages(const std::string& engine, const std::string& id,
                                            const Store& store) {
  const auto machine = store.machine();
  store.say("lists the packages of the image");
  constexpr const char* kScript =
      "import importlib.metadata as m, json\n"
      "print(json.dumps([[str(d.metadata['Name']), str(d.version)] for d in m.distributions()]))";
  const json all =
      json::parse(output_of(engine_question({engine, "run", "--rm", "--network", "none",
                                             "--entrypoint", "python3", id, "-c", kScript}),
                            store.cancel()),
                  nullptr, false);
  std::vector<verdict::Package> out;
  if (!all.is_array()) throw BuildError("the image's Python does not answer");
  for (const json& one : all) {
    if (!one.is_array() || one.size() != 2 || !one[0].is_string() || !one[1].is_string()) continue;
    verdict::Package package;
    package.name = one[0];
    package.version = one[1];
    out.push_back(std::move(package));
  }
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) {
    return verdict::normal_name(a.name) < verdict::normal_name(b.name);
  });
  return out;
}

std::string hash_of(const std::string& id) {
  return id.rfind("sha256:", 0) == 0 ? id.substr(7) : id;
}

}  // namespace

Ready make_image(const MakeContext& context, const scenario::ImageSource& image) {
  const std::string engine = find_container_engine(image.engine);
  const json about = inspect_image(engine, image.name, context.store);
  Ready out;
  const std::string id = text_at(about, "Id");
  verdict::ArtefactIdentity& identity = out.identity;
  identity.hash = hash_of(id);
  identity.path = id;
  const json config = about.value("Config", json::object());
  const json labels = config.is_object() ? config.value("Labels", json::object()) : json();
  // https://github.com/opencontainers/image-spec: annotations.md, pre-defined keys.
  identity.version = text_at(labels, "org.opencontainers.image.version");
  identity.commit = text_at(labels, "org.opencontainers.image.revision");
  if (const auto digests = about.find("RepoDigests"); digests != about.end() &&
                                                      digests->is_array() && !digests->empty() &&
                                                      (*digests)[0].is_string())
    identity.notes.push_back("digest " + (*digests)[0].get<std::string>());
  if (const auto variables = config.find("Env");
      variables != config.end() && variables->is_array()) {
    for (const json& each : *variables) {
      const std::string text = each.is_string() ? each.get<std::string>() : "";
      const std::size_t equal = text.find('=');
      if (equal != std::string::npos && equal > 0)
        out.identity.environment[text.substr(0, equal)] = text.substr(equal + 1);
    }
  }
  if (image.list_packages) {
    identity.packages = list_packages(engine, id, context.store);
  } else {
    identity.packages_why = "image.list_packages is not set";
  }
  // By id: a tag may be moved while we run.
  out.container = {engine, id};
  out.container_run = image.run;
  return out;
}

std::vector<std::string> stop_container(const Ready& ready, const std::string& name) {
  if (ready.container.empty()) return {};
  return {ready.container[0], "stop", "-t", std::to_string(kStopSeconds), name};
}

void put_into_container(const Ready& ready, const std::string& name, const std::string& run_dir,
                        target::WorkerSpec& worker) {
  std::vector<std::string> argv = {ready.container[0],
                                   "run",
                                   "--rm",
                                   "--init",
                                   "--name",
                                   name,
                                   "--network",
                                   "host",
                                   "--volume",
                                   run_dir + ":" + run_dir};
  std::set<std::string> names = {"WARMGATE_RUN", "WARMGATE_EVENTS_DIR", "TMPDIR"};
  for (const auto& [variable, value] : worker.env) names.insert(variable);
  for (const std::string& variable : names) {
    argv.emplace_back("--env");
    argv.push_back(variable);
  }
  argv.insert(argv.end(), ready.container_run.begin(), ready.container_run.end());
  argv.emplace_back("--entrypoint");
  argv.push_back(worker.argv.front());
  argv.push_back(ready.container[1]);
  argv.insert(argv.end(), worker.argv.begin() + 1, worker.argv.end());
  worker.argv = std::move(argv);
}

}  // namespace warmgate::run
