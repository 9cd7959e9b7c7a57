// Reads start-up logs of inference engines, line by line and in constant memory: from files
// (`warmgate explain`) and from the output of a server that is just starting.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/explain/reading.h"

namespace warmgate::explain {

/// False in a build without RE2; then Grammars::load throws std::runtime_error saying so.
[[nodiscard]] bool available();
/// "RE2", or why log grammars cannot be read in this build.
[[nodiscard]] std::string availability();

namespace internal {
struct GrammarSet;
class ReaderImpl;
}  // namespace internal

/// The log grammars of all engines, compiled once; immutable, may be shared between threads.
class Grammars {
 public:
  /// Of no engine: whatever is read has no place.
  Grammars();
  Grammars(const Grammars&) = default;  // and no moving: what was moved from would be of nothing
  Grammars& operator=(const Grammars&) = default;
  /// Every *.yaml of a folder (usually FIXTURES/servers/log). Throws scenario::ScenarioError with
  /// every problem as file:line, std::runtime_error in a build without RE2.
  static Grammars load(const std::filesystem::path& folder);
  /// Of scenario::find_fixtures(fixtures) / "servers/log".
  static Grammars standard(const std::filesystem::path& fixtures = {});

  std::vector<std::string> engines() const;

 private:
  friend class Reader;
  std::shared_ptr<const internal::GrammarSet> set_;
};

/// One thing that was read, as soon as it is certain.
struct Said {
  enum class What {
    kPhaseBegin,
    kPhaseEnd,
    kProgress,  // a milestone, or a bar that moved: value = done, of = total
    kFigure,    // name, value; as read from this line, before any rule over ranks
    kSkip,
    kCause,
    kEcho,
    kVictim,
    kOutside,
    kHang,
    kCompile,  // after ready; text = the kernel
    kReady,
  };
  What what = What::kProgress;
  int source = 0;
  std::int64_t line = 0;
  std::string phase;
  std::string name;      // of the pattern or figure
  nlohmann::json value;  // number, text or null
  std::string worker;    // label as printed, or ""
  std::optional<int> rank;
  std::string text;        // valid UTF-8, bounded
  std::int64_t t_ns = -1;  // as given to feed(); -1 = none
};
std::string_view to_string(Said::What what);

/// What is known about the end besides the log; all empty for a file.
struct Ending {
  std::optional<int> exit_code;
  std::optional<int> signal;
  bool deadline = false;  // somebody gave up waiting
  bool asked = false;     // somebody ended it on purpose: an end after ready is no crash
};

struct Options {
  std::string engine;  // grammar to use from the first line on; "" = find out
};

/// Not thread-safe. Sources may be fed alternately; lines of a source stay in order.
class Reader {
 public:
  explicit Reader(const Grammars& grammars, Options options = {});
  ~Reader();
  Reader(Reader&&) noexcept;
  Reader& operator=(Reader&&) noexcept;

  int add_source(std::string name);
  /// Any bytes; lines may be cut anywhere. `t_ns`: when they came, monotonic, -1 = not known.
  void feed(int source, std::string_view bytes, std::int64_t t_ns = -1);
  /// Called from within feed() and finish(), in order. Nothing is said of an engine before it is
  /// recognised; what its first lines said follows then.
  void on_said(std::function<void(const Said&)> said);
  /// What is known at this moment, as if the log ended here; the reader goes on.
  Reading so_far(const Ending& ending = {});
  /// Takes the last unfinished line and judges. Call once.
  Reading finish(const Ending& ending = {});

 private:
  std::unique_ptr<internal::ReaderImpl> impl_;
};

}  // namespace warmgate::explain
