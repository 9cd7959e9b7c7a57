// Which compile keys were made ready before serving, which were launched, and which were compiled
// late: read by three contracts, by figures and by the accepted sets.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "harness/contract/view.h"

namespace warmgate::contract {

struct KeyUse {
  struct Warmed {
    std::string kernel;
    std::set<int> ranks;     // where it was asked for
    std::set<int> ok_ranks;  // where some compile of it ended with status ok
    bool compiled = false;   // some rank came to compile it; else it was only asked for
    std::vector<std::size_t> events;
  };
  struct Launched {
    std::string kernel, layer_kind, role;
    std::set<int> ranks;
    std::set<std::string> classes;  // request classes, where the engine names them
    std::vector<std::size_t> events;
  };
  struct Late {
    std::string kernel, phase;
    std::set<int> ranks;
    std::vector<std::size_t> events;
    bool by_plugin = false;  // a Python plugin saw the compiler at work
  };
  /// By key text. warmed: keys that the engine said it would ask for (`asked`), or compiled, in
  /// warmup or capture. An engine that tells no list is known by its compile events alone.
  std::map<std::string, Warmed> warmed;
  /// Launches in serve of kernels that have a run-time key.
  std::map<std::string, Launched> launched;
  /// `compile` with source `compiler` once serving may have begun; disk and memory are not late. A
  /// late file of Triton's cache is not told again where a plugin saw the kernel being compiled.
  std::map<std::string, Late> late;
};

KeyUse key_use(const View& view);
/// The engine's compile events that count as warmed, i.e. not the harness's own.
bool is_warmed_compile(const View& view, std::size_t i);

}  // namespace warmgate::contract
