#include <stdexcept>

#include "harness/run/prepare.h"

namespace warmgate::run {

namespace fs = std::filesystem;

void prepare_command(const scenario::Scenario& scenario, const scenario::Variant& variant,
                     Prepared& prepared) {
  const scenario::Target& target = variant.target;
  if (target.argv.empty()) throw std::runtime_error("the target's command has no words");
  // "." for a scenario without a folder in its path, so that it is where its file is, not where
  // the run's folder is.
  const fs::path home = fs::absolute(scenario.path).parent_path();
  target::WorkerSpec worker;
  worker.rank = 0;
  worker.argv = target.argv;
  worker.cwd = (home / target.cwd).lexically_normal().string();
  // A program named by a path is found from where it runs, like a shell would after `cd`.
  if (const fs::path program = worker.argv[0]; program.has_parent_path() && program.is_relative()) {
    worker.argv[0] = (fs::path(worker.cwd) / program).lexically_normal().string();
  }
  worker.env = target.env;
  worker.env.try_emplace("WARMGATE_SCENARIO", fs::absolute(scenario.path).string());
  worker.env.try_emplace("WARMGATE_VARIANT", variant.name);
  worker.env.try_emplace("WARMGATE_RUN_DIR", prepared.dir.path().string());
  prepared.spec.workers.push_back(std::move(worker));
}

}  // namespace warmgate::run
