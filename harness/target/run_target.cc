#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <system_error>

#include "harness/contract/view.h"
#include "harness/target/evidence.h"
#include "harness/target/guard.h"
#include "harness/target/hang/hang_evidence.h"
#include "harness/target/run_state.h"
#include "harness/trace/wire.h"
#include "harness/trace/wire_calls.h"

namespace warmgate::target {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kScratchBytes = 256 * 1024;
// For core dumps: 0.4 MB of a small program come at once, of a device full of code later.
constexpr std::chrono::seconds kHangPatience{10};

unsigned next_id() {
  static std::atomic<unsigned> counter{1};
  return counter++;
}

}  // namespace

RunState::RunState(const TargetSpec& spec, const CancelToken& cancel, const Progress& progress)
    : spec_(spec),
      progress_(progress),
      id_(run_prefix() + std::to_string(next_id())),
      aftermath_("WARMGATE_RUN=" + id_, spec.secrets),
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

TargetResult RunState::run() {
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

void RunState::prepare() {
  if (spec_.workers.empty()) throw std::runtime_error("nothing to start");
  become_subreaper();
  ensure_guard();
  fs::create_directory(tmp_dir());
  // Our own engine sends through the channel alone; a folder costs a short run a twentieth.
  const auto& all = spec_.workers;
  if (spec_.events_dir ||
      !std::all_of(all.begin(), all.end(), [](const WorkerSpec& each) { return each.ours; })) {
    fs::create_directory(events_folder(spec_));
    dir_ = std::make_unique<EventsDir>(events_folder(spec_), result_.trace, spec_.secrets);
    const fs::path byte = events_folder(spec_) / trace::kReadyFile;
    ready_byte_ = Fd(::open(byte.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (ready_byte_.valid() && ::pwrite(ready_byte_.get(), "\0", 1, 0) != 1) ready_byte_.reset();
  }
  null_ = open_high("/dev/null", O_RDWR);
  if (spec_.companion == nullptr) return;
  spec_.companion->prepare(sink_, "WARMGATE_RUN=" + id_);
  companion_ = spec_.companion;
}

std::vector<std::string> RunState::environment(const WorkerSpec& worker) const {
  std::map<std::string, std::string> over = {{"TMPDIR", tmp_dir().string()}};
  for (const auto& [name, value] : worker.env) over[name] = value;
  if (dir_) over["WARMGATE_EVENTS_DIR"] = events_folder(spec_).string();
  over["WARMGATE_RUN"] = id_;
  std::vector<std::string> without = {"WARMGATE_EVENTS_FD"};
  if (!dir_) without.emplace_back("WARMGATE_EVENTS_DIR");  // one of whoever started us
  return inherited_environment(over, without);
}

void RunState::start_workers() {
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
    aftermath_.add_group(worker->pid());
    if (companion_) companion_->started({worker->rank(), worker->pid(), worker->started_ns()});
    workers_.push_back(std::move(worker));
  }
  if (companion_) companion_->start();
}

bool RunState::any_running() const {
  return std::any_of(workers_.begin(), workers_.end(), [](const auto& w) { return w->running(); });
}

void RunState::watch() {
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

void RunState::watch_sink() {
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

void RunState::take_sink() {
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

void RunState::watch_dir() {
  dir_watch_.async_wait(dir_watch_.wait_read, [this](auto error) {
    if (error) return;
    poll_dir();
    watch_dir();
  });
}

void RunState::poll_dir() {
  if (dir_ && dir_->poll()) {
    clock_.heard(Clock::now());
    take_events(nullptr);
  }
}

void RunState::take_events(Worker* worker) {
  const Clock::time_point now = Clock::now();
  const auto& events = result_.trace.events;
  bool sample = false;  // once for all of them: they are read after they happened
  for (; seen_ < events.size(); ++seen_) {
    const trace::Event& event = events[seen_];
    if (spec_.on_event) spec_.on_event(event);
    const int rank = event.rank ? *event.rank : worker != nullptr ? worker->rank() : -1;
    if (event.ev == "phase_begin") {
      const std::string phase = event.str("phase");
      clock_.begin(event.source, rank, phase, now);
      if (progress_) progress_(rank, phase);
    } else if (event.ev == "phase_end") {
      clock_.end(event.source, event.str("phase"), now);
      sample = true;
    } else if (contract::says_ready(event) || contract::log_says_ready(event)) {
      tell_ready();
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

void RunState::tell_ready() {
  if (ready_byte_.valid() && ::pwrite(ready_byte_.get(), "\1", 1, 0) == 1) ready_byte_.reset();
}

void RunState::arm_limits() {
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

void RunState::give_up(const PhaseClock::Expiry& expiry) {
  result_.hung = true;
  result_.hang_kind = expiry.kind;
  result_.hang_phase = expiry.phase;
  harness_events_.push_back(trace::harness_event(
      "deadline", {{"phase", expiry.phase}, {"kind", expiry.kind}, {"after_s", expiry.after_s}},
      expiry.rank >= 0 ? std::optional<int>(expiry.rank) : std::nullopt));
  look_at_hang();
  end_all();
}

void RunState::look_at_hang() {
  std::vector<std::pair<pid_t, int>> running;
  for (const auto& worker : workers_) {
    if (worker->running()) running.emplace_back(worker->pid(), worker->rank());
  }
  for (trace::Event& event : hang_evidence(with_descendants(running), events_folder(spec_),
                                           result_.trace, kHangPatience)) {
    if (spec_.on_event) spec_.on_event(event);
    harness_events_.push_back(std::move(event));
  }
}

void RunState::ended(Worker& worker) {
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

TargetResult run_target(const TargetSpec& spec, const CancelToken& cancel,
                        const Progress& progress) {
  try {
    return RunState(spec, cancel, progress).run();
  } catch (const std::exception& error) {
    TargetResult result;
    result.infra_error = std::string("watching the run failed: ") + error.what();
    return result;
  }
}

}  // namespace warmgate::target
