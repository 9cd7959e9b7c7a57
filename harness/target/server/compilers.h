// Which process is a compiler, what it compiles, and for whom.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace warmgate::target {

/// nvcc, cicc, ptxas, ninja, linkers, C and C++ compilers …: by name, with any path, target triplet
/// and version (x86_64-linux-gnu-g++-12).
bool is_compiler(std::string_view program);
/// The name is_compiler() knows it by: "g++" of the above; "" if it is none.
std::string compiler_name(std::string_view program);

/// What a compiler was told to make: "gemm" of `nvcc … gemm.cu`, the folder's name of `ninja -C`,
/// the output of a linker; "temporary" for names that are random; "" if nothing tells.
std::string compiled_name(const std::vector<std::string>& argv);
/// "sm_90a" of -arch=sm_90a, --gpu-name sm_90a …; "" if it does not say.
std::string compiled_arch(const std::vector<std::string>& argv);

/// The rank that a process title or a path names (VLLM::Worker_TP1, sglang::scheduler_TP1_EP1,
/// rank_3_0, rank3), nullopt if none.
std::optional<int> named_rank(std::string_view text);

/// False for commands whose work is done elsewhere (docker, podman, kubectl, srun, ssh …, also
/// behind sudo, env and the like): their processes are no descendants, and their stores not ours.
bool runs_here(const std::vector<std::string>& argv);

/// A compiler that runs, or ran a moment ago.
struct CompilerRun {
  pid_t pid = 0;
  std::string program, name, arch;
  std::int64_t started_ns = 0;  // monotonic, ±10 ms
  std::optional<int> rank;
};

/// Looks at all processes of the machine, and closely only at those that are new.
class CompilerWatch {
 public:
  explicit CompilerWatch(std::string marker) : marker_(std::move(marker)) {}
  /// `rank` of its descendants where nothing else tells; -1: none.
  void add_root(pid_t pid, int rank) { roots_[pid] = rank; }
  /// Who runs now is not of the run; before the first look().
  void begin();
  /// Compilers of the run that began since the last look. Of a chain (nvcc → cicc → ptxas) the
  /// first one only.
  std::vector<CompilerRun> look();

 private:
  struct Known {
    std::uint64_t start_ticks = 0;
    int looks = 0;  // left, as it may still become another program
  };
  struct Family {
    bool ours = false;      // a root's descendant, or it carries the marker
    bool compiler = false;  // an ancestor is one
    std::optional<int> rank;
  };
  Family family(pid_t pid, pid_t parent);

  std::string marker_;
  std::map<pid_t, int> roots_;
  std::unordered_map<pid_t, Known> known_;
};

}  // namespace warmgate::target
