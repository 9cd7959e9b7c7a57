#include "harness/run/schedule.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "harness/run/server.h"
#include "harness/trace/vocabulary.h"

namespace warmgate::run {

RowKey Job::row() const { return {scenario->name, scenario->path.string(), variant->name, repeat}; }

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
}

bool is_time_gated(const scenario::Scenario& scenario,
                   const std::vector<verdict::Metric>& metrics) {
  const auto is_time = [&](const std::string& name) {
    const trace::FigureRule* figure = trace::find_figure(name);
    if (figure != nullptr) return figure->unit == verdict::kTimeUnit;
    return std::any_of(metrics.begin(), metrics.end(), [&](const verdict::Metric& metric) {
      return metric.name == name && metric.unit == verdict::kTimeUnit;
    });
  };
  return std::any_of(scenario.gate.begin(), scenario.gate.end(), [&](const auto& entry) {
    return (entry.second.max || entry.second.min) && is_time(entry.first);
  });
}

namespace {

class Runner {
 public:
  Runner(std::vector<Job>& jobs, const ScheduleOptions& options, const target::CancelToken& cancel,
         RowWriter& rows, const Progress& progress)
      : jobs_(jobs), options_(options), cancel_(cancel), rows_(rows), progress_(progress) {}

  void run() {
    std::vector<std::size_t> shared, alone;
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      if (!jobs_[i].skip.empty()) {
        ++done_;
      } else {
        (jobs_[i].time_gated ? alone : shared).push_back(i);
      }
    }
    run_beside(shared);
    for (const std::size_t i : alone) run_alone(i, 1);
    for (Job& job : jobs_) {
      if (job.ended && job.result.hung) confirm(job);
    }
  }

 private:
  void run_beside(const std::vector<std::size_t>& which) {
    const std::size_t threads =
        std::min(which.size(), static_cast<std::size_t>(std::max(1, options_.jobs)));
    if (threads == 0) return;
    std::string trouble;
    const auto lock = take(target::MachineLock::Mode::kShared, *jobs_[which[0]].scenario, trouble);
    if (lock && !lock->held()) {
      for (const std::size_t i : which) give_up(jobs_[i], *lock);
      return;
    }
    const double scale = std::max(
        1.0, static_cast<double>(threads) / static_cast<double>(std::max(1, options_.cores)));
    std::atomic<std::size_t> next{0};
    const auto work = [&] {
      for (std::size_t i = next++; i < which.size() && !cancel_.cancelled(); i = next++) {
        Job& job = jobs_[which[i]];
        job.disturbed = threads > 1;
        execute(job, scale);
      }
    };
    std::vector<std::jthread> pool;
    for (std::size_t i = 1; i < threads; ++i) pool.emplace_back(work);
    work();
  }

  void run_alone(std::size_t i, double scale) {
    if (cancel_.cancelled()) return;
    std::string trouble;
    const auto lock = take(target::MachineLock::Mode::kExclusive, *jobs_[i].scenario, trouble);
    if (lock && !lock->held()) return give_up(jobs_[i], *lock);
    jobs_[i].disturbed = !lock;
    execute(jobs_[i], scale);
    if (!lock) add_note(jobs_[i], "not alone for certain, its times are not gated: " + trouble);
  }

  // Who holds the machine is measuring, so it is waited for; a cancel ends the wait. Nothing, and
  // why, where the lock cannot be used at all: then nobody can be kept out.
  std::optional<target::MachineLock> take(target::MachineLock::Mode mode,
                                          const scenario::Scenario& scenario,
                                          std::string& trouble) {
    try {
      return std::optional<target::MachineLock>(
          std::in_place, mode, "warmgate " + scenario.name, cancel_, options_.lock_wait,
          [&](const std::string& holder) {
            if (!progress_) return;
            const std::lock_guard guard(progress_mutex_);
            progress_({done_, static_cast<int>(jobs_.size()), scenario.name, "",
                       "waits for the machine (" + holder + ")"});
          });
    } catch (const std::system_error& error) {
      trouble = error.what();
      return std::nullopt;
    }
  }

  // The machine did not become free. After a cancel nothing is said: nothing was wrong.
  void give_up(Job& job, const target::MachineLock& lock) {
    if (cancel_.cancelled()) return;
    job.result = {};
    job.result.infra_error =
        fmt::format("the machine was not free for {} s; it is held by {}",
                    std::chrono::duration_cast<std::chrono::seconds>(options_.lock_wait).count(),
                    lock.waited_for());
    job.ended = true;
    write_ended(job);
    report(job, "", true);
  }

  static void add_note(Job& job, const std::string& note) {
    job.note += (job.note.empty() ? "" : "; ") + note;
  }

  // A machine that was merely slow is no hang: once more, alone, with twice the time. What that run
  // gives is what counts; a crash found that way is a crash.
  void confirm(Job& job) {
    if (cancel_.cancelled()) return;
    const std::string first =
        fmt::format("{} in {}", job.result.hang_kind,
                    job.result.hang_phase.empty() ? "no phase" : job.result.hang_phase);
    target::TargetResult hung = std::move(job.result);
    job.result = {};
    job.ended = false;
    const bool was_disturbed = job.disturbed;
    run_alone(static_cast<std::size_t>(&job - jobs_.data()), 2);
    if (!job.ended || job.result.interrupted || !job.result.infra_error.empty()) {
      const std::string why = job.result.infra_error;
      job.result = std::move(hung);  // nothing better was seen
      job.ended = true;
      job.disturbed = was_disturbed;
      job.note = "not confirmed: " + (why.empty() ? "ended before the second run was done" : why);
    } else if (job.result.hung) {
      job.note = fmt::format("confirmed by a second run, alone, with doubled deadlines (first: {})",
                             first);
    } else {
      job.note = fmt::format(
          "hung at first ({}); this is the second run, alone, with doubled deadlines", first);
    }
  }

  void execute(Job& job, double scale) {
    rows_.run("started", job.row(), {{"scale", scale}});
    PrepareOptions prepare_options = options_.prepare;
    prepare_options.deadline_scale = scale;
    // A time that the caller set is not stretched because other runs go beside it, but it is for
    // the confirmation of a hang.
    if (prepare_options.timeout_s && scale >= 2 && !job.disturbed) *prepare_options.timeout_s *= 2;
    try {
      const target::GpuLock gpus = lock_gpus(job);
      if (!gpus.held() && cancel_.cancelled()) return;  // not reached
      const Prepared prepared = prepare(*job.scenario, *job.variant, prepare_options);
      job.result = options_.start(prepared.spec, cancel_, [&](int rank, std::string_view phase) {
        rows_.run("phase", job.row(), {{"rank", rank}, {"phase", phase}});
        if (rank <= 0) report(job, std::string(phase), false);
      });
      if (!prepared.note.empty()) add_note(job, prepared.note);
      if (prepared.dir.kept()) add_note(job, "its folder is kept: " + prepared.dir.path().string());
    } catch (const std::exception& error) {
      job.result = {};
      job.result.infra_error = error.what();
    }
    job.ended = true;
    write_ended(job);
    report(job, "", true);
  }

  // Two runs on one GPU measure each other, even where their times are not gated: whoever comes
  // second finds less memory.
  target::GpuLock lock_gpus(const Job& job) {
    target::GpuLock lock(
        gpus_of(*job.variant), target::MachineLock::default_folder(), cancel_, options_.lock_wait,
        [&](const std::string& uuid) { report(job, "waits for GPU " + uuid, false); });
    if (!lock.held() && !cancel_.cancelled()) {
      throw std::runtime_error(fmt::format(
          "GPU {} was not free for {} s", lock.missing(),
          std::chrono::duration_cast<std::chrono::seconds>(options_.lock_wait).count()));
    }
    return lock;
  }

  void write_ended(const Job& job) {
    if (!rows_.is_open()) return;
    using nlohmann::ordered_json;
    ordered_json workers = ordered_json::array();
    for (const verdict::WorkerEnd& end : job.result.workers) {
      ordered_json worker = {{"rank", end.rank}, {"pid", end.pid}};
      if (end.exited) {
        worker["exit_code"] = end.exit_code;
      } else {
        worker["signal"] = target::signal_name(end.signal);
      }
      worker["killed_by_us"] = end.killed_by_us;
      workers.push_back(std::move(worker));
    }
    ordered_json fields = {{"wall_s", job.result.wall_s},
                           {"events", job.result.trace.events.size()},
                           {"workers", std::move(workers)}};
    const auto faults = job.result.trace.of("fault");
    if (!faults.empty()) {
      fields["fault"] = {{"type", faults[0]->str("type")}, {"message", faults[0]->str("message")}};
    }
    if (job.result.hung) {
      fields["hung"] = {{"kind", job.result.hang_kind}, {"phase", job.result.hang_phase}};
    }
    if (job.result.interrupted) fields["interrupted"] = true;
    if (!job.result.infra_error.empty()) fields["infra"] = job.result.infra_error;
    rows_.run("ended", job.row(), std::move(fields));
  }

  void report(const Job& job, std::string phase, bool ended) {
    if (!progress_) return;
    const std::lock_guard lock(progress_mutex_);
    if (ended) done_ = std::min(done_ + 1, static_cast<int>(jobs_.size()));
    progress_({done_, static_cast<int>(jobs_.size()), job.scenario->name, job.variant->name,
               std::move(phase)});
  }

  std::vector<Job>& jobs_;
  const ScheduleOptions& options_;
  const target::CancelToken& cancel_;
  RowWriter& rows_;
  const Progress& progress_;
  std::mutex progress_mutex_;
  int done_ = 0;
};

}  // namespace

void run_jobs(std::vector<Job>& jobs, const ScheduleOptions& options,
              const target::CancelToken& cancel, RowWriter& rows, const Progress& progress) {
  Runner(jobs, options, cancel, rows, progress).run();
}

}  // namespace warmgate::run
