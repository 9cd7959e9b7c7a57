// One run while it goes: what run_target() keeps, and the steps that it is made of.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "harness/target/aftermath.h"
#include "harness/target/companion.h"
#include "harness/target/events_dir.h"
#include "harness/target/phase_clock.h"
#include "harness/target/sink_queue.h"
#include "harness/target/stop_command.h"
#include "harness/target/target.h"
#include "harness/target/worker.h"

namespace warmgate::target {

/// One run: a state machine over one io_context in the calling thread.
///   watching → (a failure of one, a deadline, a cancel, a finished companion) → ending: the stop
///   command, SIGTERM, grace, SIGKILL
///   all workers gone → settling: descendants may vanish → what is left is named and killed
class RunState {
 public:
  RunState(const TargetSpec& spec, const CancelToken& cancel, const Progress& progress);
  TargetResult run();

 private:
  using Clock = std::chrono::steady_clock;

  // Start and watch: run_target.cc.
  void prepare();
  std::filesystem::path tmp_dir() const { return spec_.run_dir / "tmp"; }
  std::vector<std::string> environment(const WorkerSpec& worker) const;
  void start_workers();
  bool any_running() const;
  void watch();
  void watch_sink();
  void take_sink();
  void watch_dir();
  void poll_dir();
  // Events that came since the last call; `worker` is whose pipe they came by, null for the folder.
  void take_events(Worker* worker);
  void arm_limits();
  void give_up(const PhaseClock::Expiry& expiry);
  // What everybody does now, before it is ended.
  void look_at_hang();
  // For probes, which cannot know it from inside.
  void tell_ready();
  void ended(Worker& worker);

  // From the decision to end it to the last event: run_end.cc.
  void end_all_soon();
  void end_all();
  // Once, whatever the end; `then` follows, at once where there is no command.
  void run_stop(const std::function<void()>& then);
  void stop_companion();
  void all_gone();
  void signal_all();
  // Every worker is gone. Their descendants may still be on their way out.
  void settle();
  // What is left is held against the workers only where they ended, or could have, as they wanted.
  bool leftovers_count() const;
  void remove_leftovers(std::vector<ProcessInfo> left);
  void done();
  void finish(bool kernel_killed);
  void finish(const Worker& worker, bool kernel_killed);

  enum class Stage { kWatching, kEnding, kSettling, kDone };

  const TargetSpec& spec_;
  const Progress& progress_;
  const std::string id_;
  Aftermath aftermath_;
  PhaseClock clock_;
  TargetResult result_;
  std::vector<trace::Event> harness_events_;  // joined at the end: readers append while it runs
  std::size_t seen_ = 0;                      // events of the trace that were looked at
  boost::asio::io_context io_{1};
  boost::asio::posix::basic_stream_descriptor<Worker::Executor> cancel_watch_, dir_watch_,
      sink_watch_;
  boost::asio::basic_waitable_timer<Clock, boost::asio::wait_traits<Clock>, Worker::Executor>
      limit_timer_, end_timer_, settle_timer_;
  StopCommand stop_;
  std::vector<char> scratch_;
  std::unique_ptr<EventsDir> dir_;
  Fd null_, ready_byte_;
  std::vector<std::unique_ptr<Worker>> workers_;
  Stage stage_ = Stage::kWatching;
  SinkQueue sink_;
  Companion* companion_ = nullptr;  // the spec's, once it is prepared
  bool ended_by_us_ = false, peers_timed_ = false;
  bool companion_stopped_ = false, stop_ran_ = false, stop_runs_ = false;
  Clock::time_point armed_for_, grace_over_, settle_until_;
  Clock::duration settle_pause_ = std::chrono::milliseconds(1);
};

}  // namespace warmgate::target
