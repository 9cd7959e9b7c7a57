// When runs are started, without starting any: a fake takes the place of run_target.
#include "harness/run/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <thread>

namespace warmgate::run {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Its own folder for the machine's lock, so that no other test's runs are in the way.
class Schedule : public ::testing::Test {
 protected:
  Schedule() : dir_("schedule-test") {
    ::setenv("XDG_RUNTIME_DIR", dir_.path().c_str(), 1);
    scenario_.name = "s";
    scenario_.path = dir_.path() / "s.yaml";
    variant_.name = variant_.base_name = "A";
    variant_.target.kind = scenario::Target::Kind::kCommand;
    variant_.target.argv = {"true"};
    options_.jobs = 4;
    options_.cores = 2;
    options_.start = [this](const target::TargetSpec& spec, const target::CancelToken&,
                            const target::Progress& progress) {
      const int beside = ++running_;
      {
        const std::lock_guard lock(mutex_);
        most_ = std::max(most_, beside);
        scales_.push_back(spec.deadlines.scale);
        threads_.push_back(std::this_thread::get_id());
      }
      progress(0, "load");
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      --running_;
      const std::lock_guard lock(mutex_);
      if (answers_.empty()) return target::TargetResult{};
      target::TargetResult answer = answers_.front();
      answers_.erase(answers_.begin());
      return answer;
    };
  }
  ~Schedule() override { ::unsetenv("XDG_RUNTIME_DIR"); }

  std::vector<Job> jobs(std::size_t n, bool time_gated = false) {
    std::vector<Job> out(n);
    for (std::size_t i = 0; i < n; ++i) {
      out[i].scenario = &scenario_;
      out[i].variant = &variant_;
      out[i].repeat = static_cast<int>(i);
      out[i].time_gated = time_gated;
    }
    return out;
  }
  void run(std::vector<Job>& all) {
    RowWriter rows(dir_.path() / "rows.jsonl");
    run_jobs(all, options_, cancel_, rows, {});
  }
  std::vector<std::string> states() {
    std::ifstream in(dir_.path() / "rows.jsonl");
    std::vector<std::string> out;
    for (std::string line; std::getline(in, line);) {
      out.push_back(nlohmann::json::parse(line)["state"]);
    }
    return out;
  }
  static target::TargetResult hung(const char* phase) {
    target::TargetResult out;
    out.hung = true;
    out.hang_kind = "deadline";
    out.hang_phase = phase;
    return out;
  }

  RunDir dir_;
  scenario::Scenario scenario_;
  scenario::Variant variant_;
  ScheduleOptions options_;
  target::CancelToken cancel_;
  std::mutex mutex_;
  std::atomic<int> running_{0};
  int most_ = 0;
  std::vector<double> scales_;
  std::vector<std::thread::id> threads_;
  std::vector<target::TargetResult> answers_;
};

TEST_F(Schedule, RunsBesideEachOtherAndSaysSo) {
  auto all = jobs(8);
  run(all);
  EXPECT_GT(most_, 1);
  EXPECT_LE(most_, 4);
  for (const Job& job : all) {
    EXPECT_TRUE(job.ended);
    EXPECT_TRUE(job.disturbed);
  }
  EXPECT_THAT(scales_, ::testing::Each(2.0));  // 4 jobs on 2 cores
}

TEST_F(Schedule, OneRunIsNotDisturbed) {
  auto all = jobs(1);
  run(all);
  EXPECT_FALSE(all[0].disturbed);
  EXPECT_THAT(scales_, ElementsAre(1.0));
  EXPECT_THAT(states(), ElementsAre("started", "phase", "ended"));
}

TEST_F(Schedule, TimeGatedRunsGoAloneWhateverJobsSays) {
  auto all = jobs(4, true);
  run(all);
  EXPECT_EQ(most_, 1);
  for (const Job& job : all) EXPECT_FALSE(job.disturbed);
}

TEST_F(Schedule, AHangIsConfirmedAloneWithTwiceTheTime) {
  answers_ = {hung("warmup"), hung("warmup")};
  auto all = jobs(1);
  run(all);
  EXPECT_THAT(scales_, ElementsAre(1.0, 2.0));
  EXPECT_TRUE(all[0].result.hung);
  EXPECT_THAT(all[0].note, HasSubstr("confirmed"));
  EXPECT_THAT(all[0].note, HasSubstr("deadline in warmup"));
}

TEST_F(Schedule, ACrashFoundByTheSecondRunIsACrash) {
  target::TargetResult crash;
  crash.workers.resize(1);
  crash.workers[0].signal = 11;
  answers_ = {hung("profile"), crash};
  auto all = jobs(1);
  run(all);
  EXPECT_FALSE(all[0].result.hung);
  ASSERT_EQ(all[0].result.workers.size(), 1u);
  EXPECT_THAT(all[0].note, HasSubstr("hung at first (deadline in profile)"));
}

TEST_F(Schedule, TheTimeTheUserGaveIsDoubledForTheConfirmationOnly) {
  options_.prepare.timeout_s = 3;
  std::vector<double> totals;
  options_.start = [&](const target::TargetSpec& spec, const target::CancelToken&,
                       const target::Progress&) {
    totals.push_back(spec.deadlines.total_s.value_or(-1));
    return hung("load");
  };
  auto all = jobs(1);
  run(all);
  EXPECT_THAT(totals, ElementsAre(3, 6));
}

TEST_F(Schedule, SkippedRunsAreNotStarted) {
  auto all = jobs(2);
  all[0].skip = "needs a GPU";
  run(all);
  EXPECT_FALSE(all[0].ended);
  EXPECT_TRUE(all[1].ended);
}

TEST_F(Schedule, ACancelEndsTheQueue) {
  options_.jobs = 1;
  int started = 0;
  options_.start = [&](const target::TargetSpec&, const target::CancelToken&,
                       const target::Progress&) {
    ++started;
    cancel_.cancel();
    target::TargetResult out = hung("load");
    out.interrupted = true;
    return out;
  };
  auto all = jobs(3);
  run(all);
  EXPECT_EQ(started, 1);
  EXPECT_TRUE(all[0].ended);
  EXPECT_FALSE(all[1].ended);
}

TEST_F(Schedule, WhatCannotBeStartedIsTheMachinesFault) {
  variant_.target.argv.clear();
  auto all = jobs(1);
  run(all);
  EXPECT_THAT(all[0].result.infra_error, HasSubstr("no words"));
}

TEST_F(Schedule, WhoMeasuresIsWaitedFor) {
  target::CancelToken never;
  std::optional<target::MachineLock> measuring(std::in_place, target::MachineLock::Mode::kExclusive,
                                               "a benchmark", never, std::chrono::seconds(5));
  ASSERT_TRUE(measuring->held());
  std::string said;
  std::jthread other;
  auto all = jobs(1);
  RowWriter rows;
  run_jobs(all, options_, cancel_, rows, [&](const Status& status) {
    if (status.phase.find("waits") == std::string::npos || !said.empty()) return;
    said = status.phase;
    EXPECT_EQ(most_, 0);  // nothing was started yet
    other = std::jthread([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      measuring.reset();
    });
  });
  EXPECT_THAT(said, HasSubstr("a benchmark"));
  EXPECT_TRUE(all[0].ended);
}

TEST_F(Schedule, AMachineThatDoesNotBecomeFreeIsInfraAndNamesWhoHoldsIt) {
  const target::CancelToken never;
  const target::MachineLock measuring(target::MachineLock::Mode::kExclusive, "a benchmark", never,
                                      std::chrono::seconds(5));
  options_.lock_wait = std::chrono::milliseconds(40);
  for (const bool time_gated : {false, true}) {
    auto all = jobs(3, time_gated);
    run(all);
    EXPECT_EQ(most_, 0);
    for (const Job& job : all) {
      EXPECT_TRUE(job.ended);
      EXPECT_THAT(job.result.infra_error, HasSubstr("not free for 0 s"));
      EXPECT_THAT(job.result.infra_error, HasSubstr("a benchmark"));
    }
  }
}

TEST_F(Schedule, WithoutALockTimesAreDisturbedAndTheReasonIsSaid) {
  fs::create_directory(target::MachineLock::file(dir_.path()));
  auto all = jobs(1, true);
  run(all);
  EXPECT_TRUE(all[0].disturbed);
  EXPECT_THAT(all[0].note, HasSubstr("its times are not gated: cannot open"));
}

TEST_F(Schedule, OnlyBoundsOnTimesAskForTheMachine) {
  EXPECT_FALSE(is_time_gated(scenario_));
  scenario_.gate["kv_bytes"].max = 1;
  EXPECT_FALSE(is_time_gated(scenario_));
  scenario_.gate["time_to_ready_s"].regress = scenario::Regress{};
  EXPECT_FALSE(is_time_gated(scenario_));
  scenario_.gate["time_to_ready_s"].max = 600;
  EXPECT_TRUE(is_time_gated(scenario_));
  scenario_.gate.clear();
  scenario_.gate["nccl_init"].max = 2;
  EXPECT_FALSE(is_time_gated(scenario_));
  verdict::Metric metric;
  metric.name = "nccl_init";
  metric.unit = "s";
  EXPECT_TRUE(is_time_gated(scenario_, {metric}));
}

}  // namespace
}  // namespace warmgate::run
