#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <system_error>

#include "harness/target/companion.h"
#include "harness/target/events_dir.h"
#include "harness/target/evidence.h"
#include "harness/target/guard.h"
#include "harness/target/leftover_events.h"
#include "harness/target/phase_clock.h"
#include "harness/target/process_end.h"
#include "harness/target/remains.h"
#include "harness/target/sink_queue.h"
#include "harness/target/stop_command.h"
#include "harness/target/sweep.h"
#include "harness/target/target.h"
#include "harness/target/worker.h"
#include "harness/trace/wire.h"

namespace warmgate::target {
namespace {

namespace asio = boost::asio;
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

Clock::duration seconds(double s) {
  return std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(std::clamp(s, 0.0, 1e8)));
}

constexpr std::size_t kScratchBytes = 256 * 1024;
constexpr double kUnkillable_s = 10;  // SIGKILL → given up on

/// One run: a state machine over one io_context in the calling thread.
///   watching → (a failure of one, a deadline, a cancel, a finished companion) → ending: the stop
///   command, SIGTERM, grace, SIGKILL
///   all workers gone → settling: descendants may vanish → what is left is named and killed
class Run {
 public:
  Run(const TargetSpec& spec, const CancelToken& cancel, const Progress& progress)
      : spec_(spec),
        progress_(progress),
        id_(run_prefix() + std::to_string(next_id()++)),
        orphans_("WARMGATE_RUN=" + id_),
        clock_(spec.deadlines, spec.phases, Clock::now()),
        cancel_watch_(io_),
        dir_watch_(io_),
        sink_watch_(io_),
        limit_timer_(io_),
        end_timer_(io_),
        settle_timer_(io_),
        stop_(io_),
        scratch_(kScratchBytes) {
    cancel_watch_.assign(::fcntl(cancel.fd(), F_DUPFD_CLOEXEC, 3));
  }

  TargetResult run() {
    const std::int64_t begin = trace::now_ns();
    const std::int64_t oom_kills = kernel_oom_kills();
    result_.trace.events.reserve(1024);  // a short run's; growing moves them all
    result_.trace.declared_phases = spec_.phases;
    result_.trace.world = static_cast<int>(spec_.workers.size());
    try {
      prepare();
      start_workers();
    } catch (const std::exception& error) {
      result_.infra_error = error.what();
      end_all();
    }
    if (!workers_.empty()) {
      watch();
      io_.run();
    }
    const std::int64_t kills = kernel_oom_kills();
    finish(kills > oom_kills && oom_kills >= 0);
    result_.wall_s = static_cast<double>(trace::now_ns() - begin) / 1e9;
    return std::move(result_);
  }

 private:
  static std::atomic<unsigned>& next_id() {
    static std::atomic<unsigned> counter{1};
    return counter;
  }

  void prepare() {
    if (spec_.workers.empty()) throw std::runtime_error("nothing to start");
    become_subreaper();
    ensure_guard();
    fs::create_directory(spec_.run_dir / "tmp");
    // Our own engine sends through the channel alone; a folder costs a short run a twentieth.
    const auto& all = spec_.workers;
    if (!std::all_of(all.begin(), all.end(), [](const WorkerSpec& each) { return each.ours; })) {
      fs::create_directory(events_dir());
      dir_ = std::make_unique<EventsDir>(events_dir(), result_.trace, spec_.secrets);
    }
    null_ = open_high("/dev/null", O_RDWR);
    if (spec_.companion == nullptr) return;
    spec_.companion->prepare(sink_, "WARMGATE_RUN=" + id_);
    companion_ = spec_.companion;
  }

  fs::path events_dir() const { return spec_.run_dir / "events"; }

  std::vector<std::string> environment(const WorkerSpec& worker) const {
    std::map<std::string, std::string> over = {{"TMPDIR", (spec_.run_dir / "tmp").string()}};
    for (const auto& [name, value] : worker.env) over[name] = value;
    if (dir_) over["WARMGATE_EVENTS_DIR"] = events_dir().string();
    over["WARMGATE_RUN"] = id_;
    std::vector<std::string> without = {"WARMGATE_EVENTS_FD"};
    if (!dir_) without.emplace_back("WARMGATE_EVENTS_DIR");  // one of whoever started us
    return inherited_environment(over, without);
  }

  void start_workers() {
    for (const WorkerSpec& spec : spec_.workers) {
      auto worker = std::make_unique<Worker>(
          io_, spec, result_.trace, spec_.secrets, scratch_,
          Worker::Hooks{[this] { clock_.heard(Clock::now()); },
                        [this](Worker& w) { take_events(&w); }, [this](Worker& w) { ended(w); },
                        [this](Worker& w, std::string_view stream, std::string_view bytes) {
                          if (companion_) {
                            companion_->output(w.rank(), stream, bytes, trace::now_ns());
                          }
                        }});
      worker->start({environment(spec), spec_.memory_bytes, null_.get()});
      orphans_.add_group(worker->pid());
      if (companion_) companion_->started({worker->rank(), worker->pid(), worker->started_ns()});
      workers_.push_back(std::move(worker));
    }
    if (companion_) companion_->start();
  }

  bool any_running() const {
    return std::any_of(workers_.begin(), workers_.end(),
                       [](const auto& w) { return w->running(); });
  }

  void watch() {
    cancel_watch_.async_wait(cancel_watch_.wait_read, [this](auto error) {
      if (error || stage_ == Stage::kDone) return;
      result_.interrupted = true;
      end_all();
    });
    if (dir_ && dir_->fd() >= 0) {
      dir_watch_.assign(::fcntl(dir_->fd(), F_DUPFD_CLOEXEC, 3));
      watch_dir();
    }
    sink_watch_.assign(::fcntl(sink_.fd(), F_DUPFD_CLOEXEC, 3));
    watch_sink();
    arm_limits();
  }

  void watch_sink() {
    sink_watch_.async_wait(sink_watch_.wait_read, [this](auto error) {
      if (error) return;
      take_sink();
      if (companion_ && companion_->finished() && stage_ == Stage::kWatching) {
        result_.finished = true;
        end_all();
      }
      watch_sink();
    });
  }

  void take_sink() {
    for (trace::Event& event : sink_.take()) {
      clock_.heard(Clock::now());
      // What answers has started: phases of its log that nobody ended run out no more.
      if (event.ev == "ready" && event.str("clock") == "health") {
        clock_.gone("log" + event.source.substr(std::min<std::size_t>(4, event.source.size())),
                    Clock::now());
      }
      result_.trace.events.push_back(std::move(event));
    }
    take_events(nullptr);
  }

  void watch_dir() {
    dir_watch_.async_wait(dir_watch_.wait_read, [this](auto error) {
      if (error) return;
      poll_dir();
      watch_dir();
    });
  }

  void poll_dir() {
    if (dir_ && dir_->poll()) {
      clock_.heard(Clock::now());
      take_events(nullptr);
    }
  }

  // Events that came since the last call; `worker` is whose pipe they came by, null for the folder.
  void take_events(Worker* worker) {
    const Clock::time_point now = Clock::now();
    const auto& events = result_.trace.events;
    bool sample = false;  // once for all of them: they are read after they happened
    for (; seen_ < events.size(); ++seen_) {
      const trace::Event& event = events[seen_];
      const int rank = event.rank ? *event.rank : worker != nullptr ? worker->rank() : -1;
      if (event.ev == "phase_begin") {
        const std::string phase = event.str("phase");
        clock_.begin(event.source, rank, phase, now);
        if (progress_) progress_(rank, phase);
      } else if (event.ev == "phase_end") {
        clock_.end(event.source, event.str("phase"), now);
        sample = true;
      } else if (event.ev == "hello") {
        sample = true;
      } else if (event.ev == "bye") {
        clock_.gone(event.source, now);
        sample = true;
      }
    }
    if (sample && worker != nullptr) worker->sample_peak();
    if (stage_ == Stage::kWatching && clock_.next() < armed_for_) arm_limits();
  }

  void arm_limits() {
    if (stage_ != Stage::kWatching) return;
    // Without inotify the folder is looked at every 50 ms, on this timer.
    armed_for_ = clock_.next();
    if (dir_ && dir_->fd() < 0) {
      armed_for_ = std::min(armed_for_, Clock::now() + std::chrono::milliseconds(50));
    }
    limit_timer_.expires_at(armed_for_);
    limit_timer_.async_wait([this](auto error) {
      if (error || stage_ != Stage::kWatching) return;
      poll_dir();
      if (const auto expiry = clock_.expired(Clock::now())) {
        give_up(*expiry);
      } else {
        arm_limits();
      }
    });
  }

  void give_up(const PhaseClock::Expiry& expiry) {
    result_.hung = true;
    result_.hang_kind = expiry.kind;
    result_.hang_phase = expiry.phase;
    harness_events_.push_back(trace::harness_event(
        "deadline", {{"phase", expiry.phase}, {"kind", expiry.kind}, {"after_s", expiry.after_s}},
        expiry.rank >= 0 ? std::optional<int>(expiry.rank) : std::nullopt));
    end_all();
  }

  void ended(Worker& worker) {
    const Clock::time_point now = Clock::now();
    clock_.heard(now);
    clock_.gone(worker.source(), now);
    if (progress_) progress_(worker.rank(), "ended");
    if (worker.failed() && result_.first_failed_rank < 0) result_.first_failed_rank = worker.rank();
    if (companion_) {
      companion_->ended(worker.end());
      // Its last words may be that it is done.
      if (stage_ == Stage::kWatching && !companion_->finished() &&
          companion_->needed(worker.rank())) {
        result_.ended_early = true;
      }
    }
    if (!any_running()) return all_gone();
    if (result_.ended_early) return end_all_soon();
    if (worker.failed()) end_all_soon();
  }

  void end_all_soon() {
    if (stage_ != Stage::kWatching || peers_timed_) return;
    // The others often fail of the same cause in the same moment, and their own words say more than
    // our signal would.
    peers_timed_ = true;
    end_timer_.expires_after(seconds(spec_.deadlines.peer_grace_s * spec_.deadlines.scale));
    end_timer_.async_wait([this](auto error) {
      if (!error && stage_ == Stage::kWatching) end_all();
    });
  }

  void end_all() {
    if (stage_ != Stage::kWatching || workers_.empty()) return;
    stage_ = Stage::kEnding;
    limit_timer_.cancel();
    stop_companion();
    if (!spec_.stop.argv.empty()) {
      // What it ends ends by us.
      ended_by_us_ = true;
      grace_over_ = Clock::now() + seconds(spec_.deadlines.shutdown_grace_s);
      for (const auto& worker : workers_) worker->excuse();
    }
    run_stop([this] { any_running() ? signal_all() : settle(); });
  }

  // Once, whatever the end; `then` follows, at once where there is no command.
  void run_stop(const std::function<void()>& then) {
    if (spec_.stop.argv.empty() || stop_ran_) return then();
    stop_ran_ = stop_runs_ = true;
    WorkerSpec like;
    like.env = spec_.stop.env;
    stop_.run(spec_.stop, environment(like), null_.get(), [this, then] {
      stop_runs_ = false;
      harness_events_.push_back(stop_.event());
      then();
    });
    if (stop_.pid() > 0) orphans_.add_group(stop_.pid());
  }

  void stop_companion() {
    if (companion_ && !companion_stopped_) companion_->stop();
    companion_stopped_ = true;
  }

  void all_gone() {
    if (stop_runs_) return;  // it goes on from there
    if (stage_ == Stage::kWatching) stage_ = Stage::kEnding;
    limit_timer_.cancel();
    end_timer_.cancel();
    stop_companion();
    run_stop([this] { settle(); });
  }

  void signal_all() {
    grace_over_ = Clock::now() + seconds(spec_.deadlines.shutdown_grace_s);
    for (const auto& worker : workers_) ended_by_us_ = worker->signal(SIGTERM) || ended_by_us_;
    end_timer_.expires_at(grace_over_);
    end_timer_.async_wait([this](auto error) {
      if (error || stage_ != Stage::kEnding) return;
      for (const auto& worker : workers_) worker->signal(SIGKILL);
      end_timer_.expires_after(seconds(kUnkillable_s));
      end_timer_.async_wait([this](auto again) {
        if (again || stage_ != Stage::kEnding) return;
        if (result_.infra_error.empty()) {
          result_.infra_error =
              "a worker does not end though it got SIGKILL (blocked in the kernel)";
        }
        done();
      });
    });
  }

  // Every worker is gone. Their descendants may still be on their way out.
  void settle() {
    if (stage_ == Stage::kDone) return;
    if (stage_ != Stage::kSettling) {
      stage_ = Stage::kSettling;
      limit_timer_.cancel();
      end_timer_.cancel();
      settle_until_ =
          leftovers_count() ? Clock::now() + seconds(spec_.deadlines.settle_s) : grace_over_;
    }
    bool quiet = true;
    for (const auto& worker : workers_) quiet = worker->drain() && quiet;
    poll_dir();
    const std::vector<ProcessInfo> left = orphans_.find();
    if (left.empty() && quiet) return done();
    if (Clock::now() >= settle_until_ || result_.interrupted) {
      remove_leftovers(left);
      return done();
    }
    settle_timer_.expires_after(settle_pause_);
    settle_pause_ = std::min<Clock::duration>(settle_pause_ * 2, std::chrono::milliseconds(50));
    settle_timer_.async_wait([this](auto error) {
      if (!error) settle();
    });
  }

  // What is left is held against the workers only where they ended, or could have, as they wanted.
  bool leftovers_count() const {
    if (!ended_by_us_) return true;
    return result_.finished && std::none_of(workers_.begin(), workers_.end(),
                                            [](const auto& w) { return w->end().needed_sigkill; });
  }

  void remove_leftovers(std::vector<ProcessInfo> left) {
    if (left.empty()) {
      // Nobody carries our marker, yet a pipe of ours is open somewhere.
      std::vector<std::uint64_t> pipes;
      for (const auto& worker : workers_) {
        for (const std::uint64_t inode : worker->open_pipes()) pipes.push_back(inode);
      }
      left = holders_of_pipes(pipes);
      for (const ProcessInfo& process : left) {
        ::kill(process.pid, SIGKILL);
        orphans_.add_group(process.group);  // so that it is waited for
      }
    }
    if (leftovers_count()) note(leftover_processes(left, spec_.secrets));
    if (leftovers_count()) note_shared_memory(left);  // while its users can be asked
    const std::size_t unkillable = orphans_.kill_all();
    if (unkillable > 0 && result_.infra_error.empty()) {
      result_.infra_error = std::to_string(unkillable) +
                            " descendants do not end though they got "
                            "SIGKILL";
    }
    for (const auto& worker : workers_) worker->drain();
  }

  void note(std::vector<trace::Event> events) {
    for (trace::Event& event : events) harness_events_.push_back(std::move(event));
  }

  void note_shared_memory(const std::vector<ProcessInfo>& left) {
    std::set<pid_t> workers;
    for (const auto& worker : workers_) workers.insert(worker->pid());
    shm_noted_ = true;
    note(leftover_memory(shm_, left, std::move(workers)));
  }

  void done() {
    if (leftovers_count() && !shm_noted_) note_shared_memory({});
    stage_ = Stage::kDone;
    io_.stop();
  }

  void finish(bool kernel_killed) {
    for (const auto& worker : workers_) worker->finish();
    if (dir_) dir_->finish();
    if (companion_) {
      stop_companion();
      companion_->close({result_.finished, result_.hung, result_.interrupted});
      take_sink();
    }
    take_events(nullptr);
    bool secret = dir_ && dir_->saw_secret();
    for (const auto& worker : workers_) {
      secret = secret || worker->saw_secret();
      finish(*worker, kernel_killed);
    }
    if (dir_ && leftovers_count()) {
      for (const std::string& file : files_below(spec_.run_dir / "tmp", kMostLeftovers)) {
        harness_events_.push_back(
            trace::harness_event("leftover", {{"what", "file"}, {"path", "tmp/" + file}}));
      }
    }
    std::vector<std::string> found;
    for (const auto& worker : workers_) {
      const std::vector<std::string> more = worker->found_secrets();
      found.insert(found.end(), more.begin(), more.end());
    }
    mask_run(result_, std::move(harness_events_), spec_.secrets, secret, std::move(found));
  }

  void finish(const Worker& worker, bool kernel_killed) {
    harness_events_.push_back(process_end(worker, spec_, result_.trace, kernel_killed));
    result_.workers.push_back(worker.end());
    for (const verdict::Output& output : worker.outputs()) result_.outputs.push_back(output);
  }

  enum class Stage { kWatching, kEnding, kSettling, kDone };

  const TargetSpec& spec_;
  const Progress& progress_;
  const std::string id_;
  Orphans orphans_;
  PhaseClock clock_;
  TargetResult result_;
  std::vector<trace::Event> harness_events_;  // joined at the end: readers append while it runs
  std::size_t seen_ = 0;                      // events of the trace that were looked at
  asio::io_context io_{1};
  asio::posix::basic_stream_descriptor<Worker::Executor> cancel_watch_, dir_watch_, sink_watch_;
  asio::basic_waitable_timer<Clock, asio::wait_traits<Clock>, Worker::Executor> limit_timer_,
      end_timer_, settle_timer_;
  StopCommand stop_;
  std::vector<char> scratch_;
  std::unique_ptr<EventsDir> dir_;
  Fd null_;
  std::vector<std::unique_ptr<Worker>> workers_;
  Stage stage_ = Stage::kWatching;
  const SharedMemoryWatch shm_;
  SinkQueue sink_;
  Companion* companion_ = nullptr;  // the spec's, once it is prepared
  bool ended_by_us_ = false, peers_timed_ = false, shm_noted_ = false;
  bool companion_stopped_ = false, stop_ran_ = false, stop_runs_ = false;
  Clock::time_point armed_for_, grace_over_, settle_until_;
  Clock::duration settle_pause_ = std::chrono::milliseconds(1);
};

}  // namespace

TargetResult run_target(const TargetSpec& spec, const CancelToken& cancel,
                        const Progress& progress) {
  try {
    return Run(spec, cancel, progress).run();
  } catch (const std::exception& error) {
    TargetResult result;
    result.infra_error = std::string("watching the run failed: ") + error.what();
    return result;
  }
}

}  // namespace warmgate::target
