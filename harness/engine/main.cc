// warmgate-engine: one rank of the modelled engine in a process of its own.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "harness/engine/crash.h"
#include "harness/engine/jit/kernel_set.h"
#include "harness/engine/ops/device.h"
#include "harness/engine/options.h"
#include "harness/engine/parallel/collectives.h"
#include "harness/engine/phases/engine.h"
#include "harness/engine/phases/machine_memory.h"

namespace {

using namespace warmgate;

constexpr int kFailed = 1, kSetUp = 2;

/// If whoever started us dies, we die: nothing of a run may outlive the harness. The signal follows
/// the death of the parent's thread from now on, so a parent that is gone already is looked for.
void die_with_parent() {
  const pid_t parent = ::getppid();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::raise(SIGKILL);
}

std::string read_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat st {};
  if (fd < 0 || ::fstat(fd, &st) != 0)
    throw std::runtime_error("cannot read " + path + ": " + std::strerror(errno));
  std::string text;
  char buffer[16384];
  ssize_t n = 0;
  while ((n = ::read(fd, buffer, sizeof buffer)) > 0) text.append(buffer, static_cast<size_t>(n));
  const int error = errno;
  ::close(fd);
  if (n < 0) throw std::runtime_error("cannot read " + path + ": " + std::strerror(error));
  return text;
}

scenario::Resolved read_config(const std::string& path) {
  try {
    return scenario::resolved_from_json(nlohmann::json::parse(read_file(path)));
  } catch (const nlohmann::json::exception& error) {
    throw std::runtime_error(path + ": " + error.what());
  }
}

int set_up_failed(trace::EventWriter& writer, const char* message) {
  std::fprintf(stderr, "warmgate-engine: %s\n", message);
  writer.send(trace::Line("setup_error").str("message", message));
  return kSetUp;
}

int too_large(trace::EventWriter& writer, const engine::TooLarge& error) {
  std::fprintf(stderr, "warmgate-engine: %s\n", error.what());
  writer.send(trace::Line("setup_error")
                  .str("message", error.what())
                  .num("needed_bytes", error.needed)
                  .num("available_bytes", error.available));
  return kSetUp;
}

int run(const engine::Options& options, trace::EventWriter& writer) {
  writer.hello("warmgate-engine " WARMGATE_VERSION, options.rank, options.world,
               engine::emitted_kinds());
  engine::install_crash_handlers(writer.descriptor(), options.rank);
  std::unique_ptr<scenario::Resolved> config;
  std::unique_ptr<engine::Collectives> collectives;
  std::unique_ptr<jit::Compiler> compiler;
  try {
    config = std::make_unique<scenario::Resolved>(read_config(options.config));
    engine::check_fits(*config, options.world, engine::available_memory());
    collectives = options.world == 1 ? engine::make_local_collectives()
                                     : engine::make_shared_collectives(
                                           options.collectives_fd, options.rank, options.world,
                                           config->collective_deadline_ms);
    compiler = std::make_unique<jit::Compiler>(engine::cache_as_seamed(options.compiler, *config));
  } catch (const engine::TooLarge& error) {
    return too_large(writer, error);
  } catch (const std::exception& error) {
    return set_up_failed(writer, error.what());
  }
  const bool ok =
      engine::run_engine(*config, writer, *collectives, *compiler, engine::set_crash_phase);
  return ok ? 0 : kFailed;
}

}  // namespace

int main(int argc, char** argv) {
  die_with_parent();
  trace::EventWriter writer;
  try {
    const engine::Options options = engine::parse_options({argv + 1, argv + argc});
    if (options.help || options.version) {
      std::fputs(options.help ? engine::usage().c_str() : "warmgate-engine " WARMGATE_VERSION "\n",
                 stdout);
      return 0;
    }
    if (options.devices) {
      for (const std::string_view name : engine::device_names())
        std::printf("%.*s\n", static_cast<int>(name.size()), name.data());
      return 0;
    }
    writer.open_from_environment();
    return run(options, writer);
  } catch (const engine::BadUsage& error) {
    // The harness may be listening: tell it too, since it then knows that no engine failed.
    if (writer.open_from_environment())
      writer.hello("warmgate-engine " WARMGATE_VERSION, std::nullopt, std::nullopt,
                   engine::emitted_kinds());
    return set_up_failed(writer, error.what());
  }
}
