#include "harness/engine/options.h"

#include <charconv>

namespace warmgate::engine {

namespace {

int number(const std::string& name, const std::string& text, int least, int most) {
  int value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || value < least || value > most)
    throw BadUsage(name + " '" + text + "': a number from " + std::to_string(least) + " to " +
                   std::to_string(most));
  return value;
}

jit::Backend backend(const std::string& text) {
  if (text == "auto") return jit::Backend::kAuto;
  if (text == "nvrtc") return jit::Backend::kNvrtc;
  if (text == "host") return jit::Backend::kHost;
  throw BadUsage("--jit '" + text + "': auto, nvrtc or host");
}

void set(Options& options, const std::string& name, const std::string& value) {
  constexpr int kMostRanks = 1024;
  if (name == "--config") {
    options.config = value;
  } else if (name == "--rank") {
    options.rank = number(name, value, 0, kMostRanks - 1);
  } else if (name == "--world") {
    options.world = number(name, value, 1, kMostRanks);
  } else if (name == "--collectives-fd") {
    options.collectives_fd = number(name, value, 0, 1 << 20);
  } else if (name == "--kernel-cache") {
    options.compiler.cache_dir = value == "none" ? "" : value;
  } else if (name == "--jit") {
    options.compiler.backend = backend(value);
  } else {
    throw BadUsage("unknown argument '" + name + "'; see --help");
  }
}

}  // namespace

Options parse_options(const std::vector<std::string>& arguments) {
  Options options;
  bool cache_named = false;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::string name = arguments[i], value;
    if (name == "--help" || name == "-h") {
      options.help = true;
      return options;
    }
    if (name == "--version") {
      options.version = true;
      return options;
    }
    if (name == "--devices") {
      options.devices = true;
      return options;
    }
    if (const std::size_t equals = name.find('='); equals != std::string::npos) {
      value = name.substr(equals + 1);
      name.resize(equals);
    } else if (i + 1 < arguments.size()) {
      value = arguments[++i];
    } else {
      throw BadUsage("'" + name + "' has no value; see --help");
    }
    set(options, name, value);
    cache_named = cache_named || name == "--kernel-cache";
  }
  if (options.config.empty()) throw BadUsage("--config is missing");
  if (options.rank >= options.world)
    throw BadUsage("--rank " + std::to_string(options.rank) + " of --world " +
                   std::to_string(options.world) + ": ranks count from 0");
  if (options.world > 1 && options.collectives_fd < 0)
    throw BadUsage("--collectives-fd is missing: more than one rank needs it");
  if (!cache_named) options.compiler.cache_dir = jit::default_cache_dir();
  return options;
}

std::string usage() {
  return "warmgate-engine: one rank of the modelled engine, from start to shutdown\n"
         "\n"
         "  --config FILE         resolved scenario of this rank (JSON, schema resolved/1.x)\n"
         "  --rank R              this rank, from 0 (0)\n"
         "  --world W             ranks in all (1)\n"
         "  --collectives-fd N    memfd that the ranks share; needed where W is above 1\n"
         "  --kernel-cache DIR    disk cache of compiled kernels, or none (the user's cache)\n"
         "  --jit BACKEND         auto, nvrtc or host (auto: NVRTC if it is there)\n"
         "  --devices             print the devices this build has ops for, one a line\n"
         "  --help, --version\n"
         "\n"
         "Events go where WARMGATE_EVENTS_FD or WARMGATE_EVENTS_DIR say. Exit code: 0 all phases\n"
         "ended, 1 one failed, 2 the engine could not be set up.\n";
}

}  // namespace warmgate::engine
