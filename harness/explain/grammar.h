// A log grammar as it is used: fixtures/servers/log/ENGINE.yaml joined with common.yaml, compiled.
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "harness/explain/line.h"
#include "harness/explain/patterns.h"

namespace warmgate::scenario {
class Problems;
struct Node;
}  // namespace warmgate::scenario

namespace warmgate::explain::internal {

enum class Sort {
  kNone,
  kProgress,  // a milestone of its phase
  kSkip,
  kSwallowed,  // a failure that the engine says it survives
  kCause,
  kEcho,
  kVictim,
  kOutside,
  kNoise,
  kHang,      // somebody noticed that nothing moves
  kCompile,   // a compilation; after ready it is worth naming
  kWaiting,   // says that it waits: neither progress nor failure
  kDetail,    // completes the failure before it: function, rank, phase
  kSurvived,  // what failed before was recovered from
  kServing,   // work is being served
  kShutdown,  // an orderly end
  kSorts,
};
/// The word in YAML, "" for kNone.
std::string_view to_string(Sort sort);

enum class Fold { kLast, kFirst, kSum, kMax, kMin, kNth, kCount, kItems };
enum class Ranks { kMax, kMin, kSum, kLast, kList };

struct FigureRule {
  std::string name;
  Fold fold = Fold::kLast;    // of one worker's values, in order
  int nth = 1;                // kNth, from 1
  Ranks ranks = Ranks::kMax;  // over the workers
  std::string list_as;        // this figure is the list of the workers' values, by rank
  bool per_span = false;      // values of an earlier pass through the same phase do not count
};

/// A figure that no line prints: product of `times` over product of `over`; each factor the first
/// of its alternatives that is known (a figure's name or a number).
struct Derived {
  std::string name;
  std::vector<std::vector<std::string>> times, over;
  std::string seconds_of;  // a phase: from its first to its last line that has a time
  std::string spans_of;    // a phase: how many times it was passed through
  int at_least = 0;        // spans_of: fewer are not told
  std::string first_pass;  // with spans_of ≥ at_least: this figure's first value
  bool whole = false;      // rounded to a whole number
};

struct LineRule {
  std::string name;
  std::string in, then;  // the phase it was printed in, the phase that follows
  Sort sort = Sort::kNone;
  bool ready = false;
  bool every_rank = false;  // each rank prints it: who has not when others have is behind
  std::string type;         // of a failure, if the line itself names none
  std::string clock;        // figure that gets the line's time of day
  std::string since;        // figure that gets the seconds since the process started
  std::string count;        // figure that counts such lines
  std::string interval;     // figure that sums the seconds from `begin` lines to `end` lines
  bool interval_begins = false;
  std::string bar;                  // figures BAR_done, BAR_total of an unfinished bar
  std::string without;              // victim: the culprit is who lacks this milestone
  std::vector<std::string> resets;  // figures that start anew
  struct Take {
    int group = 0;
    int figure = -1;      // index in Grammar::figures, or
    std::string special;  // worker rank function file version world tp type message kernel step
  };
  std::vector<Take> takes;
  bool names = false;  // some take is special: a failure's or skip's own words
};

struct ServingMark {
  std::string text, end;  // it holds the one and ends with the other; "" = does not matter
  bool serves = false;    // it proves that requests of somebody are served
};

struct Grammar {
  std::string engine;  // "" = only what is common to all
  std::vector<LineRule> lines;
  PatternSet patterns;  // number = index in lines
  std::vector<FigureRule> figures;
  std::vector<Derived> derived;
  std::vector<ServingMark> serving;
  std::vector<std::string> types;         // beginnings of "Type: message" that are fingerprints
  std::vector<std::string> plain_types;   // exception types that say enough alone
  std::vector<std::string> ignore_files;  // parts of paths: frames of libraries
  // Function → phase; the innermost that is named decides. What ends with ? decides only where
  // nothing else does.
  std::map<std::string, std::string, std::less<>> frame_phases;
  std::map<std::string, double, std::less<>> patience_s;  // phase → silence that is no hang
  bool every_rank_speaks = false;  // a rank that is silent is a rank that is not there yet
  double patience(std::string_view phase) const;
  int figure(std::string_view name) const;  // -1 = none
};

struct GrammarSet {
  std::vector<Grammar> grammars;  // one per engine
  Grammar common;
  PatternSet detect;
  struct Evidence {
    int grammar = 0;
    int weight = 0;
  };
  std::vector<Evidence> evidence;  // of each pattern in detect
  std::array<std::vector<Evidence>, static_cast<std::size_t>(Form::kForms)> forms;
};

/// {num}, {int}, {name:num}, {name:int}, {name:word}, {name:text} and {exc} written out; "" in
/// `error` or what is wrong.
std::string expand_pattern(std::string_view pattern, std::string& error);

/// The phases of design order; a grammar may name no other.
const std::vector<std::string>& phase_names();

}  // namespace warmgate::explain::internal
