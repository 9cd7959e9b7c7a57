// What a log says: the answer of the log reader, in the words of the log.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace warmgate::explain {

/// The root exception: the first of its chain, in the process that did the work.
struct Fingerprint {
  /// Exception type, with the start of its message where the type alone says little (numbers as
  /// <r>); "no progress" for a hang; "Killed" where the shell says no more.
  std::string type;
  std::string function, file;  // innermost frame that is not of a library; file without folders
};

/// One stretch of the log in one phase; phases recur. Lines are 1-based and counted by '\n'.
struct PhaseSpan {
  std::string phase;
  int source = 0;  // as add_source() numbered it
  std::int64_t first_line = 0, last_line = 0;
  /// Seconds since the first stamp of the start, by the log's own clock: its engine's stamps, or
  /// the wrapper's where the engine prints none. Sources whose clocks cannot be compared (one
  /// prints the time of day, another counts from its start) each begin with their own first stamp.
  std::optional<double> begin_s, end_s;
};

/// A line worth naming.
struct Moment {
  /// cause: first exception where the work was done · echo: a parent repeats it · victim: fell
  /// because of it · outside: signal, OOM killer, disk, port · noise: looks bad, is not · skip: a
  /// step was left out · swallowed: a failure that the engine survived · progress: a milestone ·
  /// hang: somebody noticed that nothing moves · compile: a compilation after ready.
  std::string sort;
  std::string name;  // of the pattern, e.g. "load.end"; "traceback" if none matched
  int source = 0;
  std::int64_t line = 0;
  std::string worker;  // label as printed; "" = none printed
  std::optional<int> rank;
  std::string phase;
  std::string text;            // the message, valid UTF-8, bounded
  std::optional<double> at_s;  // as PhaseSpan::begin_s
};

/// Set if nothing moved at the end of the log (or before the failure of somebody who waited).
struct Silence {
  double seconds = 0;
  std::int64_t since_line = 0;  // the last line that was progress
  int source = 0;
  std::string last_text;             // of that line
  std::string last_worker;           // who printed it
  std::vector<std::string> missing;  // workers that lack a milestone which others reached
};

struct UnplacedLine {
  int source = 0;
  std::int64_t line = 0;
  std::string text;
};

struct Reading {
  std::string engine;  // name of the grammar; "" = unknown
  std::optional<std::string> version;
  /// passed: ready was said and nothing fell afterwards · crashed · hung · incomplete: the log
  /// ends, nothing failed yet · failed: it ended by itself, without an error and before ready.
  std::string outcome = "incomplete";
  std::string last_phase;  // "" = none seen
  std::optional<std::string> failing_phase, failing_worker;
  std::optional<int> failing_rank;
  /// All workers whose cause stands in the same second as the first, in order.
  std::vector<std::string> failing_workers;
  std::optional<Fingerprint> fingerprint;
  /// Innermost first, at most 3, library frames left out: "function (file)".
  std::vector<Fingerprint> frames;  // type empty
  std::string message;              // of the root exception, whole but bounded
  /// Names of the sidecars in fixtures/logs; the unit is the log's and stands in the name.
  std::map<std::string, nlohmann::json> figures;
  std::vector<PhaseSpan> phases;
  std::vector<Moment> moments;  // in order; at most kMostMoments of one sort
  std::map<std::string, std::int64_t> moment_counts;
  std::optional<Silence> silence;
  std::vector<std::string> sources;  // names
  /// Of each source, by its own lines alone; "" = they do not say for certain.
  std::vector<std::string> source_engines;
  std::vector<std::string> workers;  // labels seen, in order of appearance, bounded
  std::int64_t lines = 0, bytes = 0;
  /// A line of the file counts once, however many bars were drawn in it: unplaced if any part of
  /// it is, else placed (it has a place in the grammar), else serving; blank is what has no
  /// message, and in so_far() what was not read yet. The four add up to `lines`.
  std::int64_t placed = 0, serving = 0, unplaced = 0, blank = 0;
  std::vector<UnplacedLine> unplaced_lines;  // the first kMostUnplaced
};
inline constexpr std::size_t kMostMoments = 200;
inline constexpr std::size_t kMostUnplaced = 200;

/// schema explain/1.0; the names of the sidecars (engine, version, outcome, last_phase,
/// failing_phase, failing_worker, failing_rank, fingerprint, figures), then phases, moments, ….
/// Valid UTF-8 whatever the log held.
nlohmann::ordered_json to_json(const Reading& reading);

}  // namespace warmgate::explain
