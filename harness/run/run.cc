#include "harness/run/run.h"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "harness/run/artefact/artefacts.h"
#include "harness/run/bundle.h"
#include "harness/run/earlier_starts.h"
#include "harness/run/fit.h"
#include "harness/run/judge.h"
#include "harness/run/keys.h"
#include "harness/run/needs.h"
#include "harness/run/parallel.h"
#include "harness/run/reproduce.h"
#include "harness/run/rows.h"
#include "harness/run/run_dir.h"
#include "harness/run/schedule.h"
#include "harness/run/secrets.h"
#include "harness/run/server.h"
#include "harness/run/setup.h"
#include "harness/run/stale.h"
#include "harness/target/environment.h"
#include "harness/trace/secrets.h"
#include "harness/trace/wire.h"
#include "harness/verdict/expectation.h"

namespace warmgate::run {

namespace fs = std::filesystem;
using scenario::Problem;
using scenario::Scenario;
using scenario::ScenarioError;
using scenario::Variant;
using verdict::Verdict;

namespace {

class Gate {
 public:
  Gate(std::vector<Scenario> scenarios, const Options& options, const target::CancelToken& cancel,
       const Progress& progress)
      : options_(options),
        cancel_(cancel),
        progress_(progress),
        extras_(load_extras(options)),
        cores_(usable_cores()),
        threads_(options.jobs > 0 ? options.jobs : cores_) {
    refuse_unknown_variants(scenarios, options.variants);
    accepted_ = read_all_accepted(scenarios);
    for (Scenario& scenario : scenarios) {
      ScenarioResult result;
      // --no-expect: nothing is expected, so nothing may be shown as expected either.
      if (!options.expect) {
        for (Variant& variant : scenario.variants) variant.expect = {};
      }
      result.scenario = std::move(scenario);
      result_.scenarios.push_back(std::move(result));
    }
  }

  GateResult run() {
    const std::int64_t start = trace::now_ns();
    sweep_once();
    keep_memory();
    if (options_.no_cache) private_cache_.emplace("cache");
    // A cache that the user named is shared by all runs, its own folder is this call's alone.
    const fs::path cache = options_.no_cache            ? private_cache_->path()
                           : options_.cache_dir.empty() ? jit::default_cache_dir()
                                                        : fs::absolute(options_.cache_dir);
    std::vector<const Scenario*> scenarios;
    for (const ScenarioResult& each : result_.scenarios) scenarios.push_back(&each.scenario);
    secrets_ = known_secrets(scenarios, options_.load);
    result_.machine = target::environment_record(secrets_);
    std::vector<fs::path> files;
    for (const ScenarioResult& each : result_.scenarios) files.push_back(each.scenario.path);
    result_.command = gate_command(files, options_);

    plan();
    RowWriter rows(options_.rows, secrets_);
    rows.gate("gate",
              {{"command", result_.command}, {"runs", jobs_.size()}, {"machine", result_.machine}});
    for (const Job& job : jobs_) {
      rows.run("planned", job.row(), {{"time_gated", job.time_gated}, {"skip", job.skip}});
    }

    make_artefacts();
    ScheduleOptions schedule;
    schedule.jobs = threads_;
    schedule.cores = cores_;
    schedule.prepare.engine = find_engine(options_.engine);
    schedule.prepare.cache_dir = cache;
    schedule.prepare.jit = options_.jit;
    schedule.prepare.timeout_s = options_.timeout_s;
    schedule.prepare.grace_s = options_.grace_s;
    schedule.prepare.settle_s = options_.settle_s;
    schedule.prepare.secrets = secrets_;
    schedule.prepare.artefacts = artefacts_ ? &*artefacts_ : nullptr;
    schedule.prepare.fixtures = options_.load.fixtures;
    schedule.prepare.probes = options_.probes;
    run_jobs(jobs_, schedule, cancel_, rows, progress_);

    for (const Job& job : jobs_) {
      const std::vector<std::string>& found = job.result.secrets;
      secrets_.insert(secrets_.end(), found.begin(), found.end());
    }
    result_.secrets = trace::spellings(std::move(secrets_));

    KeyJudge keys(cache, options_.jit);
    judge_keys(keys);
    tell_earlier_starts(jobs_, cache.string());
    judge_runs(keys, rows);
    result_.interrupted = cancel_.cancelled();
    result_.wall_s = static_cast<double>(trace::now_ns() - start) / 1e9;
    rows.gate("done", {{"verdict", to_string(result_.verdict)},
                       {"interrupted", result_.interrupted},
                       {"wall_s", result_.wall_s}});
    if (std::string error = rows.finish(); !error.empty())
      result_.output_errors.push_back(std::move(error));
    return std::move(result_);
  }

 private:
  void plan() {
    check_options(options_);
    Fit fit(find_engine(options_.engine), options_.jit);
    std::vector<Problem> problems;
    refuse_too_many();
    for (ScenarioResult& result : result_.scenarios) {
      const std::string needs =
          unmet_need(result.scenario.needs, gpus_if(result.scenario.needs), options_.jit);
      for (const Variant& variant : result.scenario.variants) {
        if (!is_chosen(variant, options_.variants)) continue;
        for (scenario::Problem& problem :
             server_problems(result.scenario, variant, options_.load.fixtures)) {
          const auto same = [&](const Problem& known) { return known.text() == problem.text(); };
          if (std::none_of(problems.begin(), problems.end(), same)) {
            problems.push_back(std::move(problem));
          }
        }
        std::string unmet = needs;
        if (unmet.empty()) {
          if (const std::optional<Unfit> unfit = fit.unfit(variant)) {
            unmet = unfit->message;
            refuse(result.scenario, variant, *unfit, problems);
          }
        }
        for (int repeat = 0; repeat < std::max(1, options_.repeat); ++repeat) {
          Job job;
          job.scenario = &result.scenario;
          job.variant = &variant;
          job.repeat = repeat;
          job.time_gated = is_time_gated(result.scenario, extras_.metrics);
          job.skip = unmet;
          jobs_.push_back(std::move(job));
        }
      }
    }
    if (!problems.empty()) throw ScenarioError(std::move(problems));
  }

  // All of them before the first run, so that nothing is built or fetched while a time counts.
  void make_artefacts() {
    artefacts_.emplace(
        ArtefactOptions{options_.artefacts, options_.rebuild, options_.load.fixtures, secrets_});
    for (const Job& job : jobs_) {
      if (!job.skip.empty() || cancel_.cancelled()) continue;
      artefacts_->make(*job.scenario, *job.variant, cancel_, [&](const std::string& what) {
        if (progress_)
          progress_(
              {0, static_cast<int>(jobs_.size()), job.scenario->name, job.variant->name, what});
      });
    }
  }

  // Every run has a record, kept to the end.
  void refuse_too_many() const {
    std::size_t runs = 0;
    for (const ScenarioResult& result : result_.scenarios) {
      for (const Variant& variant : result.scenario.variants) {
        if (is_chosen(variant, options_.variants))
          runs += static_cast<std::size_t>(std::max(1, options_.repeat));
      }
    }
    if (runs <= kMostRuns) return;
    throw ScenarioError({{"--repeat", 0, 0, "",
                          fmt::format("{} times each are {} runs; at most {} in one call",
                                      options_.repeat, runs, kMostRuns)}});
  }

  // What the user asked for by name is an error everywhere, what a scenario says by itself only
  // where there is nothing but this scenario.
  void refuse(const Scenario& scenario, const Variant& variant, const Unfit& unfit,
              std::vector<Problem>& problems) const {
    const bool by_name = unfit.key == kDeviceKey && !options_.load.device.empty();
    if (options_.skip_unfit && !by_name) return;
    const Problem problem = by_name ? Problem{"--device", 0, 0, "", unfit.message}
                                    : problem_at(scenario, variant, unfit);
    const auto same = [&](const Problem& known) { return known.text() == problem.text(); };
    if (std::none_of(problems.begin(), problems.end(), same)) problems.push_back(problem);
  }

  // What a killed warmgate could not clear away itself.
  static void sweep_once() {
    static const int gone = (target::MachineLock::sweep(), sweep_stale(temp_root()));
    (void)gone;
  }

  // A run's trace is some hundred kilobytes; giving its pages back after each costs as much as
  // reading it.
  static void keep_memory() {
    ::mallopt(M_TRIM_THRESHOLD, 256 * 1024 * 1024);
    ::mallopt(M_MMAP_THRESHOLD, 4 * 1024 * 1024);
    // A thread's heap grows by one mprotect a page otherwise.
    ::mallopt(M_TOP_PAD, 1024 * 1024);
  }

  // NVML takes 20 ms to open, so it is asked only where somebody needs a GPU.
  static const std::vector<Gpu>& gpus_if(const scenario::Needs& needs) {
    static const std::vector<Gpu> none;
    return needs.gpus || needs.gpu_gib || !needs.arch.empty() ? gpus_here() : none;
  }

  void judge_keys(KeyJudge& keys) {
    in_parallel(jobs_.size(), threads_, [&](std::size_t i) {
      Job& job = jobs_[i];
      const bool native = job.variant->target.kind == scenario::Target::Kind::kNative;
      if (!job.ended || !native || job.variant->ranks.empty()) return;
      job.keys = keys.collect(job.result.trace, job.variant->ranks.front());
    });
    keys.compile(threads_, cancel_);
    result_.not_observed = keys.not_observed();
  }

  void judge_runs(KeyJudge& keys, RowWriter& rows) {
    const JudgeContext context{options_,
                               extras_,
                               keys,
                               result_.machine,
                               options_.today.empty() ? today_utc() : options_.today,
                               artefacts_ ? &*artefacts_ : nullptr};
    std::vector<JudgedRun> judged(jobs_.size());
    in_parallel(jobs_.size(), threads_, [&](std::size_t i) {
      judged[i] = judge(jobs_[i], accepted_of(*jobs_[i].scenario), context);
      const verdict::RunRecord& run = judged[i].record;
      nlohmann::ordered_json fields = {{"outcome", to_string(run.outcome)},
                                       {"verdict", to_string(judged[i].verdict.verdict)},
                                       {"phase", run.phase},
                                       {"reason", run.reason},
                                       {"reproduce", run.reproduce}};
      if (run.fingerprint) fields["fingerprint"] = run.fingerprint->id();
      rows.run("judged", jobs_[i].row(), std::move(fields));
    });

    std::size_t next = 0;
    for (std::size_t s = 0; s < result_.scenarios.size(); ++s) {
      ScenarioResult& result = result_.scenarios[s];
      for (const Variant& variant : result.scenario.variants) {
        VariantResult out;
        std::vector<verdict::RunVerdict> verdicts;
        for (; next < jobs_.size() && jobs_[next].variant == &variant; ++next) {
          out.runs.push_back(std::move(judged[next].record));
          verdicts.push_back(std::move(judged[next].verdict));
        }
        if (out.runs.empty()) continue;
        std::vector<const verdict::RunRecord*> runs;
        for (const verdict::RunRecord& run : out.runs) runs.push_back(&run);
        out.variant = variant;
        const Ready* artefact = artefacts_ ? artefacts_->find(variant) : nullptr;
        if (artefact != nullptr) out.artefact = artefact->identity;
        out.verdict = verdict::over_repeats(runs, verdicts);
        result.variants.push_back(std::move(out));
      }
      const bool all = result.variants.size() == result.scenario.variants.size();
      if (result.variants.empty()) {
        result.verdict = Verdict::kSkip;
        result.reason = "none of its variants was asked for";
        continue;
      }
      conclude(result, all, accepted_[s], context);
    }
    std::vector<Verdict> verdicts;
    for (const ScenarioResult& result : result_.scenarios) verdicts.push_back(result.verdict);
    result_.verdict = verdict::worst(verdicts);
  }

  const verdict::Accepted& accepted_of(const Scenario& scenario) const {
    for (std::size_t s = 0; s < result_.scenarios.size(); ++s) {
      if (&result_.scenarios[s].scenario == &scenario) return accepted_[s];
    }
    static const verdict::Accepted none;
    return none;
  }

  static constexpr std::size_t kMostRuns = 200000;

  const Options& options_;
  const target::CancelToken& cancel_;
  const Progress& progress_;
  Extras extras_;
  int cores_, threads_;
  std::vector<verdict::Accepted> accepted_;  // parallel to result_.scenarios
  std::vector<std::string> secrets_;
  std::optional<RunDir> private_cache_;
  std::optional<Artefacts> artefacts_;
  std::vector<Job> jobs_;  // by scenario, then variant, then repeat; points into result_
  GateResult result_;
};

}  // namespace

scenario::LoadOptions load_options(const Options& options) {
  const Extras extras = load_extras(options);
  scenario::LoadOptions out = options.load;
  for (const verdict::Metric& metric : extras.metrics) out.extra_figures[metric.name] = metric.unit;
  for (const contract::ExternalContract& contract : extras.contracts) {
    out.extra_contracts.push_back(contract.name);
  }
  return out;
}

GateResult run_scenarios(const std::vector<fs::path>& files, const Options& options,
                         const target::CancelToken& cancel, const Progress& progress) {
  return run_loaded(load_all(files, load_options(options)), options, cancel, progress);
}

GateResult run_loaded(std::vector<Scenario> scenarios, const Options& options,
                      const target::CancelToken& cancel, const Progress& progress) {
  if (!options.bundle.empty()) {
    for (Scenario& scenario : scenarios) put_secrets_back(scenario);
  }
  return Gate(std::move(scenarios), options, cancel, progress).run();
}

verdict::RunVerdict compare(const ScenarioResult& result, const std::string& a,
                            const std::string& b, const Options& options) {
  const auto side = [&](const std::string& name) {
    std::vector<const verdict::RunRecord*> runs;
    for (const VariantResult& variant : result.variants) {
      if (variant.variant.name != name) continue;
      for (const verdict::RunRecord& run : variant.runs) runs.push_back(&run);
    }
    return runs;
  };
  const verdict::Accepted accepted = verdict::read_accepted(result.scenario.accepted_path());
  verdict::GateContext gate;
  gate.rules = &result.scenario.gate;
  gate.accepted = accepted.find(b);
  gate.allow = &result.scenario.allow;
  gate.today = options.today.empty() ? today_utc() : options.today;
  return verdict::judge_ab(side(a), side(b), gate, {a, b});
}

int exit_code(const std::vector<Verdict>& verdicts, bool allow_skip) {
  const auto has = [&](Verdict verdict) {
    return std::find(verdicts.begin(), verdicts.end(), verdict) != verdicts.end();
  };
  if (has(Verdict::kFail)) return 1;
  if (has(Verdict::kInfra)) return 4;
  if (has(Verdict::kInconclusive)) return 3;
  if (has(Verdict::kPass)) return 0;
  return allow_skip ? 0 : 3;  // nothing was judged
}

}  // namespace warmgate::run
