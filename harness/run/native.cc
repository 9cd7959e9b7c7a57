#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <system_error>

#include "harness/run/prepare.h"

namespace warmgate::run {

namespace fs = std::filesystem;

namespace {

void write_config(const fs::path& path, const scenario::Resolved& resolved) {
  std::ofstream out(path, std::ios::binary);
  out << scenario::to_json(resolved).dump();
  out.close();
  if (!out) throw std::runtime_error("cannot write " + path.string() + ": " + std::strerror(errno));
}

// Close-on-exec here, so that no other worker that a parallel run starts gets it; the launcher
// hands it on to this run's own.
UniqueFd make_collectives(int world) {
  UniqueFd fd(::memfd_create("warmgate-collectives", MFD_CLOEXEC));
  if (!fd.valid() || ::ftruncate(fd.get(), collectives_bytes(world)) != 0) {
    throw std::system_error(errno, std::generic_category(),
                            "cannot make the memory that ranks exchange collectives through");
  }
  return fd;
}

}  // namespace

void prepare_native(const scenario::Variant& variant, const PrepareOptions& options,
                    Prepared& prepared) {
  if (options.engine.empty()) {
    throw std::runtime_error(
        "warmgate-engine was not found beside this program; build it, or name it with --engine");
  }
  const int world = static_cast<int>(variant.ranks.size());
  const fs::path cache =
      variant.target.cold_cache ? prepared.dir.path() / "kernel-cache" : options.cache_dir;
  if (world > 1) prepared.collectives = make_collectives(world);
  for (int rank = 0; rank < world; ++rank) {
    const fs::path config = prepared.dir.path() / ("rank" + std::to_string(rank) + ".json");
    write_config(config, variant.ranks[static_cast<std::size_t>(rank)]);
    target::WorkerSpec worker;
    worker.rank = rank;
    worker.ours = true;
    worker.cwd = prepared.dir.path().string();
    worker.env = variant.target.env;
    worker.argv = {options.engine.string(),
                   "--config",
                   config.string(),
                   "--rank",
                   std::to_string(rank),
                   "--world",
                   std::to_string(world),
                   "--kernel-cache",
                   cache.empty() ? "none" : cache.string(),
                   "--jit",
                   std::string(to_string(options.jit))};
    if (prepared.collectives.valid()) {
      worker.argv.insert(worker.argv.end(),
                         {"--collectives-fd", std::to_string(prepared.collectives.get())});
      worker.inherit_fds.push_back(prepared.collectives.get());
    }
    prepared.spec.workers.push_back(std::move(worker));
  }
}

}  // namespace warmgate::run
