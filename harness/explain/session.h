// The reader at work: what Reader hides.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/explain/clock.h"
#include "harness/explain/failures.h"
#include "harness/explain/figures.h"
#include "harness/explain/grammar.h"
#include "harness/explain/reader.h"
#include "harness/explain/text.h"
#include "harness/explain/timeline.h"
#include "harness/explain/tracebacks.h"
#include "harness/explain/workers.h"

namespace warmgate::explain::internal {

/// A bar that was drawn, by its name in the grammar.
struct BarState {
  std::int64_t done = 0, total = 0;
  std::int64_t line = 0;
};

/// What a line counts as; a later one outweighs an earlier.
enum class Tally { kServing, kPlaced, kUnplaced };

/// One file, pod, member or stream.
struct Source {
  std::string name;
  int index = 0;
  int grammar = -1;  // -1 = not known yet
  bool known = false;
  bool sure = false;  // its own lines say so, or the user
  Splitter splitter;
  TextLayer text;
  Clock clock;
  Timeline timeline;
  Tracebacks traces;

  // Before the engine is known its lines are kept and read later.
  struct Kept {
    std::string raw;
    std::int64_t number;
    std::int64_t t_ns;
  };
  std::deque<Kept> kept;
  std::size_t kept_bytes = 0;
  std::vector<int> scores;  // of each grammar
  int weighed = 0;          // lines

  int key_lines = 0;  // of a private key, left until it has to end

  std::string told_phase;  // that began and has not ended, as was said

  std::int64_t t_ns = -1;  // of what is being fed
  bool ready = false, served = false, shut = false;
  bool suffers = false;  // it has failures that it may yet recover from
  When last, alive;      // any line; a line that shows life
  std::int64_t last_t_ns = -1, alive_t_ns = -1;
  std::string alive_text;
  int alive_worker = 0;
  std::string serving_raw;  // the last line of served work, not looked at unless needed
  std::int64_t serving_line = 0, serving_t_ns = -1;
  std::int64_t serving_seen = 0;
  std::size_t serving_mark = 0;  // which mark fitted last

  std::map<std::string, BarState> bars;
  struct Header {
    int failure = -1;
    std::int64_t line = 0;
  };
  std::map<int, Header> headers;                 // worker → failure that waits for its traceback
  std::map<std::uint64_t, int> trace_failures;   // key of an open traceback → failure
  std::map<std::string, When> intervals;         // figure → begin
  std::map<std::size_t, std::uint32_t> repeats;  // line of the grammar → workers that Ray left out
  struct Recent {
    std::uint64_t hash = 0;
    int worker = -1;
    std::uint8_t depth = 0;
    double inner_s = kNoTime;
  };
  std::array<Recent, 8> recent;  // lines of a Ray cluster, to know them when they come again
  std::size_t recent_at = 0;
  std::int64_t placed = 0;
  std::int64_t tallied = 0;  // the line that was counted last, and as what
  Tally tally = Tally::kServing;
};

/// A worker that others are ahead of; it may never have spoken.
struct Behind {
  std::string label;
  std::optional<int> rank;
  std::string phase;  // of its last line, "" = none
};

class ReaderImpl {
 public:
  ReaderImpl(std::shared_ptr<const GrammarSet> set, Options options);

  int add_source(std::string name);
  void feed(int source, std::string_view bytes, std::int64_t t_ns);
  void on_said(std::function<void(const Said&)> said) { said_ = std::move(said); }
  Reading so_far(const Ending& ending);
  Reading finish(const Ending& ending);

 private:
  const Grammar& grammar(const Source& source) const;
  // Which engine is it? detect.cc
  void take_line(Source& source, std::string_view raw, std::int64_t number);
  void weigh(Source& source, std::string_view raw);
  int winner(const Source& source, int least) const;
  void replay(Source& source, int grammar);
  // One line. session.cc
  void read_line(Source& source, std::string_view raw, std::int64_t number);
  bool serving(Source& source, std::string_view raw, std::int64_t number);
  void settle_serving(Source& source);
  void read_piece(Source& source, std::string_view raw, std::int64_t number);
  void read_message(Source& source, const Line& line, const When& when);
  bool seen_before(Source& source, const Line& line, int worker);
  void bar(Source& source, const LineRule& rule, const Line& line, const When& when);
  // What a line of the grammar brings. rules.cc
  void apply_all(Source& source, const Line& line, const When& when, int worker, int traced,
                 bool may_lead);
  void apply(Source& source, int number, const Line& line, const When& when, int worker, bool leads,
             int traced);
  void take_values(Source& source, const LineRule& rule, int number, const Line& line,
                   const When& when, int& worker, Failure& failure);
  void take_special(Source& source, const std::string& special, std::string_view value, int& worker,
                    Failure& failure);
  void sorted(Source& source, const LineRule& rule, const Line& line, const When& when, int worker,
              Failure& failure, int traced);
  void detail(Source& source, const LineRule& rule, const When& when, int worker,
              const Failure& found);
  void interval(Source& source, const LineRule& rule, const When& when, int worker);
  void become_ready(Source& source, const When& when, int worker, const Line& line);
  void enter(Source& source, const std::string& phase, const When& when, int worker, bool follows);
  // Tracebacks and failures. failing.cc
  bool traceback(Source& source, const Line& line, const When& when, int worker);
  void end_traceback(Source& source, const Line& line, const When& when, int worker,
                     std::uint64_t key, const Tracebacks::Result& result);
  int fail(Source& source, Failure failure, const Line& line, const When& when, int worker);
  void tell_failure(int index);
  void tell_open_failures();
  // For whoever listens and for the reading.
  void moment(Source& source, Sort sort, const std::string& name, const When& when, int worker,
              std::string_view text);
  void say(Source& source, Said::What what, const When& when, int worker, std::string name,
           nlohmann::json value, std::string_view text);
  void live(Source& source, const When& when, int worker, std::string_view text);
  void unplaced(Source& source, const When& when, std::string_view text);
  void count(Source& source, Tally as, std::int64_t line);
  // The answer. judge.cc
  Reading judge(const Ending& ending);
  void judge_failure(Reading& out, const Failure& failure, const Source& source) const;
  void judge_hang(Reading& out) const;
  void judge_figures(Reading& out, const Source& source) const;
  void judge_outcome(Reading& out, const Source& source, const Ending& ending) const;
  void judge_outside(Reading& out, const Source& source, const Ending& ending) const;
  /// Workers that lack a milestone (a name of lines; "" = any that every rank prints) which others
  /// reached.
  std::vector<Behind> behind(const Source& source, const std::string& milestone) const;
  std::optional<Silence> silence() const;
  const Source* main_source() const;

  std::shared_ptr<const GrammarSet> set_;
  Options options_;
  std::vector<std::unique_ptr<Source>> sources_;
  Workers workers_;
  std::map<int, FigureStore> figures_;  // by grammar
  Failures failures_;
  std::function<void(const Said&)> said_;
  std::optional<std::string> version_;
  std::vector<Moment> moments_;
  std::vector<When> moment_whens_;  // of each
  YearScale years_;
  int repeated_ = 1;  // for how many lines the line at hand stands
  std::array<std::int64_t, static_cast<std::size_t>(Sort::kSorts)> moment_counts_{};
  std::vector<UnplacedLine> unplaced_;
  std::int64_t bytes_ = 0;
  std::array<std::int64_t, 3> tallies_{};  // lines, by Tally
  std::vector<int> found_, applying_;
  std::vector<std::string_view> groups_;
  Failure failure_;  // what the line at hand says of one
};

}  // namespace warmgate::explain::internal
