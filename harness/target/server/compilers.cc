#include "harness/target/server/compilers.h"

#include <dirent.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "harness/target/fd.h"
#include "harness/target/server/tree.h"
#include "harness/target/sweep.h"

namespace warmgate::target {
namespace {

constexpr std::array<std::string_view, 28> kCompilers = {
    "nvcc",     "cicc",  "ptxas",   "cudafe++", "fatbinary", "nvlink",   "tileiras",
    "ninja",    "ld",    "ld.lld",  "ld.bfd",   "ld.gold",   "lld",      "mold",
    "collect2", "gcc",   "g++",     "cc",       "c++",       "cc1",      "cc1plus",
    "as",       "clang", "clang++", "icpx",     "hipcc",     "amdclang", "tritoncc"};

// Looks at a process that is new: between fork and exec it bears its parent's name.
constexpr int kLooks = 4;
constexpr int kMaxDepth = 64;

std::string read_file(const std::string& path, std::size_t limit) {
  std::string out;
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return out;
  char buffer[4096];
  while (out.size() < limit) {
    const ssize_t n = ::read(fd.get(), buffer, sizeof buffer);
    if (n <= 0) break;
    out.append(buffer, static_cast<std::size_t>(n));
  }
  return out;
}

std::vector<std::string> arguments(pid_t pid) {
  std::vector<std::string> out;
  const std::string text = read_file("/proc/" + std::to_string(pid) + "/cmdline", 1 << 16);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\0', at), text.size());
    out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

std::string_view base(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// The name the kernel knows it by (15 bytes), else argv[0]: wrappers keep the one or the other.
std::string program_of(pid_t pid, const std::vector<std::string>& argv) {
  if (!argv.empty()) {
    if (std::string name = compiler_name(argv[0]); !name.empty()) return name;
  }
  std::string comm = read_file("/proc/" + std::to_string(pid) + "/comm", 64);
  while (!comm.empty() && comm.back() == '\n') comm.pop_back();
  if (std::string name = compiler_name(comm); !name.empty()) return name;
  char target[4096];
  const ssize_t n =
      ::readlink(("/proc/" + std::to_string(pid) + "/exe").c_str(), target, sizeof target);
  return n > 0 ? compiler_name({target, static_cast<std::size_t>(n)}) : "";
}

std::string stem_of(std::string_view path) {
  std::string_view name = base(path);
  const std::size_t dot = name.find('.', 1);
  name = name.substr(0, dot);
  return std::string(name);
}

bool has_suffix(std::string_view path) {
  constexpr std::array<std::string_view, 15> kSuffixes = {".cu",  ".cpp", ".cc",   ".cxx",   ".c",
                                                          ".ptx", ".ll",  ".mlir", ".s",     ".S",
                                                          ".gpu", ".ii",  ".o",    ".cubin", ".so"};
  return std::any_of(kSuffixes.begin(), kSuffixes.end(),
                     [&](std::string_view each) { return path.ends_with(each); });
}

// Names that compilers and tempfile make up.
bool random_name(const std::string& stem) {
  return stem.starts_with("tmpxft_") || (stem.starts_with("cc") && stem.size() == 8) ||
         (stem.starts_with("tmp") && stem.size() >= 9) || ignored({}, stem);
}

bool is_shell(std::string_view program) {
  const std::string_view name = base(program);
  return name == "sh" || name == "bash" || name == "dash" || name == "env";
}

// Asked for its version, or (by Python's ctypes.util.find_library) where a library lies.
bool is_question(const std::vector<std::string>& argv) {
  return std::any_of(argv.begin(), argv.end(), [](const std::string& word) {
    return word == "--version" || word == "-V" || word == "--help" || word == "-dumpversion" ||
           word == "-dumpfullversion" || word == "-dumpmachine" || word == "-t" ||
           word == "-Wl,-t" || word.starts_with("-print-") || word.starts_with("--print-");
  });
}

std::string tidy(const std::string& stem) { return random_name(stem) ? "temporary" : stem; }

// Nanoseconds of the monotonic clock at which a process began, of its ticks since boot.
std::int64_t started_ns(std::uint64_t ticks) {
  static const auto per_second = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  timespec boot{}, mono{};
  ::clock_gettime(CLOCK_BOOTTIME, &boot);
  ::clock_gettime(CLOCK_MONOTONIC, &mono);
  const auto ns = [](const timespec& t) { return t.tv_sec * 1'000'000'000 + t.tv_nsec; };
  const auto start = static_cast<std::int64_t>(ticks * (1'000'000'000 / per_second));
  return start - (ns(boot) - ns(mono));
}

std::vector<pid_t> all_processes() {
  std::vector<pid_t> out;
  DIR* dir = ::opendir("/proc");
  if (dir == nullptr) return out;
  while (const dirent* entry = ::readdir(dir)) {
    const std::string_view name = entry->d_name;
    pid_t pid = 0;
    const auto [end, ec] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (ec == std::errc() && end == name.data() + name.size()) out.push_back(pid);
  }
  ::closedir(dir);
  return out;
}

}  // namespace

std::string compiler_name(std::string_view program) {
  std::string_view name = base(program);
  // A version behind (-12, -12.2), a triplet in front (x86_64-linux-gnu-).
  while (!name.empty()) {
    const std::size_t dash = name.rfind('-');
    if (dash == std::string_view::npos || dash + 1 == name.size()) break;
    const std::string_view tail = name.substr(dash + 1);
    if (tail.find_first_not_of("0123456789.") != std::string_view::npos) break;
    name = name.substr(0, dash);
  }
  for (const std::string_view each : kCompilers) {
    if (name == each) return std::string(each);
    if (name.size() > each.size() + 1 && name.ends_with(each) &&
        name[name.size() - each.size() - 1] == '-' &&
        name.find("linux") != std::string_view::npos) {
      return std::string(each);
    }
  }
  return "";
}

bool is_compiler(std::string_view program) { return !compiler_name(program).empty(); }

std::string compiled_name(const std::vector<std::string>& argv) {
  std::string output;
  for (std::size_t i = 1; i < argv.size(); ++i) {
    const std::string& word = argv[i];
    const bool more = i + 1 < argv.size();
    if (word == "-C" && more) {
      std::string_view folder = argv[i + 1];
      while (folder.size() > 1 && folder.back() == '/') folder.remove_suffix(1);
      return tidy(std::string(base(folder)));
    }
    if (word == "-o" && more) output = argv[++i];
    if (word.empty() || word[0] == '-' || word == output) continue;
    if (has_suffix(word) && !word.ends_with(".o") && !word.ends_with(".so"))
      return tidy(stem_of(word));
  }
  return output.empty() ? "" : tidy(stem_of(output));
}

std::string compiled_arch(const std::vector<std::string>& argv) {
  for (const std::string& word : argv) {
    const std::size_t at = word.find("sm_");
    if (at == std::string::npos ||
        (at > 0 && std::isalnum(static_cast<unsigned char>(word[at - 1])) != 0))
      continue;
    if (word[0] != '-' && at != 0) continue;  // a path
    std::size_t end = at + 3;
    while (end < word.size() && std::isalnum(static_cast<unsigned char>(word[end])) != 0) ++end;
    if (end > at + 3) return word.substr(at, end - at);
  }
  return "";
}

std::optional<int> named_rank(std::string_view text) {
  for (const std::string_view word : {"_TP", " TP", "rank_", "rank", "Rank"}) {
    for (std::size_t at = 0; (at = text.find(word, at)) != std::string_view::npos;
         at += word.size()) {
      const bool inside = at > 0 && std::isalnum(static_cast<unsigned char>(text[at - 1])) != 0 &&
                          word[0] != '_' && word[0] != ' ';
      if (inside) continue;
      const char* first = text.data() + at + word.size();
      int rank = 0;
      const auto [end, ec] = std::from_chars(first, text.data() + text.size(), rank);
      if (ec == std::errc() && end != first && rank >= 0 && rank < 100000) return rank;
    }
  }
  return std::nullopt;
}

bool runs_here(const std::vector<std::string>& argv) {
  constexpr std::array<std::string_view, 10> kElsewhere = {
      "docker", "podman", "nerdctl", "ctr", "crictl", "kubectl", "oc", "srun", "ssh", "enroot"};
  constexpr std::array<std::string_view, 9> kWrappers = {
      "sudo", "env", "nice", "ionice", "numactl", "taskset", "timeout", "stdbuf", "time"};
  const auto among = [](const auto& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  bool wrapped = false;
  for (const std::string& word : argv) {
    const std::string_view name = base(word);
    if (among(kElsewhere, name)) return false;
    if (among(kWrappers, name)) {
      wrapped = true;
      continue;
    }
    // Of a wrapper: its options and their values, and variables.
    const bool own = word.starts_with('-') || word.find('=') != std::string::npos ||
                     word.find_first_not_of("0123456789.,-smh") == std::string::npos;
    if (!wrapped || !own) return true;
  }
  return true;
}

CompilerWatch::Family CompilerWatch::family(pid_t pid, pid_t parent) {
  Family out;
  bool chain = true;  // nothing but compilers and shells so far
  for (int depth = 0; parent > 1 && depth < kMaxDepth; ++depth) {
    const std::vector<std::string> argv = arguments(parent);
    const auto root = roots_.find(parent);
    if (chain && root == roots_.end()) {
      const bool compiler = !program_of(parent, argv).empty();
      out.compiler = out.compiler || compiler;
      chain = compiler || (!argv.empty() && is_shell(argv[0]));
    }
    if (!out.rank && !argv.empty()) out.rank = named_rank(argv[0]);
    if (root != roots_.end()) {
      out.ours = true;
      if (!out.rank && root->second >= 0) out.rank = root->second;
      return out;
    }
    ProcessInfo info;
    if (!read_process(parent, info)) break;
    parent = info.parent;
  }
  out.ours = !marker_.empty() && has_environment(pid, marker_);
  return out;
}

void CompilerWatch::begin() {
  for (const pid_t pid : all_processes()) known_[pid].looks = 0;
}

std::vector<CompilerRun> CompilerWatch::look() {
  std::vector<CompilerRun> out;
  std::unordered_map<pid_t, Known> now;
  const std::vector<pid_t> pids = all_processes();
  now.reserve(pids.size());
  for (const pid_t pid : pids) {
    const auto before = known_.find(pid);
    if (before != known_.end() && before->second.looks == 0) {
      now.emplace(pid, before->second);
      continue;
    }
    ProcessInfo info;
    if (!read_process(pid, info)) continue;
    Known known;
    if (before != known_.end() && before->second.start_ticks == info.start_ticks) {
      known = before->second;
    } else {
      known.looks = kLooks;
      known.start_ticks = info.start_ticks;
    }
    --known.looks;
    const std::vector<std::string> argv = arguments(pid);
    const std::string program = program_of(pid, argv);
    // While a process becomes another program its arguments are not there yet.
    const bool settled = !argv.empty() || known.looks == 0;
    if (settled && !program.empty() && roots_.count(pid) == 0) {
      known.looks = 0;
      if (is_question(argv)) {
        now.emplace(pid, known);
        continue;
      }
      const Family relatives = family(pid, info.parent);
      if (relatives.ours && !relatives.compiler) {
        out.push_back({pid, program, compiled_name(argv), compiled_arch(argv),
                       started_ns(info.start_ticks), relatives.rank});
      }
    }
    now.emplace(pid, known);
  }
  known_ = std::move(now);
  return out;
}

}  // namespace warmgate::target
