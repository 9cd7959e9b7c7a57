#include <signal.h>

#include <algorithm>
#include <utility>

#include "harness/target/evidence.h"
#include "harness/target/process_end.h"
#include "harness/target/run_state.h"
#include "harness/trace/wire.h"

namespace warmgate::target {
namespace {

using Clock = std::chrono::steady_clock;

Clock::duration seconds(double s) {
  return std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(std::clamp(s, 0.0, 1e8)));
}

constexpr double kUnkillable_s = 10;  // SIGKILL → given up on

}  // namespace

void RunState::end_all_soon() {
  if (stage_ != Stage::kWatching || peers_timed_) return;
  // The others often fail of the same cause in the same moment, and their own words say more than
  // our signal would.
  peers_timed_ = true;
  end_timer_.expires_after(seconds(spec_.deadlines.peer_grace_s * spec_.deadlines.scale));
  end_timer_.async_wait([this](auto error) {
    if (!error && stage_ == Stage::kWatching) end_all();
  });
}

void RunState::end_all() {
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

void RunState::run_stop(const std::function<void()>& then) {
  if (spec_.stop.argv.empty() || stop_ran_) return then();
  stop_ran_ = stop_runs_ = true;
  WorkerSpec like;
  like.env = spec_.stop.env;
  stop_.run(spec_.stop, environment(like), null_.get(), [this, then] {
    stop_runs_ = false;
    harness_events_.push_back(stop_.event());
    then();
  });
  if (stop_.pid() > 0) aftermath_.add_group(stop_.pid());
}

void RunState::stop_companion() {
  if (companion_ && !companion_stopped_) companion_->stop();
  companion_stopped_ = true;
}

void RunState::all_gone() {
  if (stop_runs_) return;  // it goes on from there
  if (stage_ == Stage::kWatching) stage_ = Stage::kEnding;
  limit_timer_.cancel();
  end_timer_.cancel();
  stop_companion();
  run_stop([this] { settle(); });
}

void RunState::signal_all() {
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
        result_.infra_error = "a worker does not end though it got SIGKILL (blocked in the kernel)";
      }
      done();
    });
  });
}

void RunState::settle() {
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
  const std::vector<ProcessInfo> left = aftermath_.find();
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

bool RunState::leftovers_count() const {
  if (!ended_by_us_) return true;
  return result_.finished && std::none_of(workers_.begin(), workers_.end(),
                                          [](const auto& w) { return w->end().needed_sigkill; });
}

void RunState::remove_leftovers(std::vector<ProcessInfo> left) {
  const std::size_t unkillable = aftermath_.remove(std::move(left), workers_, leftovers_count());
  if (unkillable > 0 && result_.infra_error.empty()) {
    result_.infra_error =
        std::to_string(unkillable) + " descendants do not end though they got SIGKILL";
  }
  for (const auto& worker : workers_) worker->drain();
}

void RunState::done() {
  if (leftovers_count()) aftermath_.note_shared_memory({}, workers_);
  stage_ = Stage::kDone;
  io_.stop();
}

void RunState::finish(bool kernel_killed) {
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
  if (leftovers_count()) aftermath_.note_files(tmp_dir());
  for (trace::Event& event : aftermath_.take_events()) {
    harness_events_.push_back(std::move(event));
  }
  std::vector<std::string> found;
  for (const auto& worker : workers_) {
    const std::vector<std::string> more = worker->found_secrets();
    found.insert(found.end(), more.begin(), more.end());
  }
  mask_run(result_, std::move(harness_events_), spec_.secrets, secret, std::move(found));
}

void RunState::finish(const Worker& worker, bool kernel_killed) {
  harness_events_.push_back(process_end(worker, spec_, result_.trace, kernel_killed));
  result_.workers.push_back(worker.end());
  for (const verdict::Output& output : worker.outputs()) result_.outputs.push_back(output);
}

}  // namespace warmgate::target
