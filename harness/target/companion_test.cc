// Runs with somebody beside them: events from another thread, an end on plan, a stop command.
#include "harness/target/companion.h"

#include <gmock/gmock.h>

#include <atomic>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "harness/target/sink_queue.h"
#include "harness/target/test_support.h"
#include "harness/trace/wire.h"

namespace warmgate::target {
namespace {

using namespace target::testing;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

trace::Event said(const std::string& text, std::int64_t t_ns = trace::now_ns()) {
  trace::Event event;
  event.ev = "note";
  event.t_ns = t_ns;
  event.rank = 0;
  event.src = "http";
  event.source = "http:server";
  event.body = {{"text", text}};
  return event;
}

// Finishes once worker 0 has printed something.
class Listener : public Companion {
 public:
  void prepare(EventSink& sink, const std::string& marker) override {
    if (fail_) throw std::runtime_error("no companion today");
    sink_ = &sink;
    marker_ = marker;
  }
  void started(const Started& worker) override { pids_.push_back(worker.pid); }
  void start() override {
    thread_ = std::thread([this] {
      sink_->add(said("started"));
      while (!stopping_ && (heard_ == 0 || waits_)) std::this_thread::yield();
      if (stopping_) return;
      finished_ = true;
      sink_->wake();
    });
  }
  void output(int, std::string_view, std::string_view bytes, std::int64_t) override {
    if (!bytes.empty()) ++heard_;
  }
  void ended(const verdict::WorkerEnd&) override { ++ends_; }
  bool needed(int rank) const override { return rank == 0; }
  bool finished() const override { return finished_; }
  void stop() override {
    ++stops_;
    stopping_ = true;
    if (thread_.joinable()) thread_.join();
  }
  void close(const RunEnd& end) override {
    closed_ = end;
    sink_->add(said("closed with sesame"));
  }

  bool fail_ = false;
  std::atomic<bool> waits_{false};
  EventSink* sink_ = nullptr;
  std::string marker_;
  std::vector<int> pids_;
  std::atomic<int> heard_{0};
  int ends_ = 0, stops_ = 0;
  std::optional<RunEnd> closed_;
  std::atomic<bool> finished_{false}, stopping_{false};
  std::thread thread_;
};

class Beside : public ::testing::Test {
 protected:
  TargetSpec spec(std::vector<std::vector<std::string>> commands) {
    std::vector<WorkerSpec> workers;
    for (auto& argv : commands) {
      workers.push_back(worker(std::move(argv), static_cast<int>(workers.size())));
    }
    TargetSpec out = spec_of(std::move(workers), dir_.path());
    out.companion = &listener_;
    return out;
  }
  static std::vector<std::string> shell(const std::string& text) { return {"sh", "-c", text}; }
  TempDir dir_;
  Listener listener_;
};

TEST_F(Beside, AnEndOnPlanIsNoCrash) {
  TargetSpec run = spec({shell("echo up; exec sleep 30")});
  run.secrets = {"sesame"};
  const TargetResult result = run_clean(run);
  EXPECT_TRUE(result.finished);
  EXPECT_FALSE(result.ended_early);
  EXPECT_FALSE(result.hung);
  EXPECT_EQ(result.first_failed_rank, -1);
  EXPECT_TRUE(result.workers[0].killed_by_us);
  EXPECT_EQ(listener_.stops_, 1);
  EXPECT_EQ(listener_.ends_, 1);
  ASSERT_TRUE(listener_.closed_);
  EXPECT_TRUE(listener_.closed_->finished);
  EXPECT_THAT(listener_.marker_, HasSubstr("WARMGATE_RUN="));
  EXPECT_EQ(listener_.pids_, std::vector<int>{result.workers[0].pid});
  const auto notes = result.trace.of("note");
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_EQ(notes[0]->str("text"), "started");
  EXPECT_THAT(notes[1]->str("text"), ::testing::Not(HasSubstr("sesame")));  // masked
}

TEST_F(Beside, AnEndBeforeThatIsEarlyHoweverWell) {
  listener_.waits_ = true;
  const TargetResult result = run_clean(spec({shell("exit 0"), shell("exec sleep 30")}));
  EXPECT_TRUE(result.ended_early);
  EXPECT_FALSE(result.finished);
  EXPECT_FALSE(result.workers[0].killed_by_us);
  EXPECT_TRUE(result.workers[1].killed_by_us);  // all end together
}

TEST_F(Beside, OneThatIsNotNeededMayGo) {
  const TargetResult result =
      run_clean(spec({shell("sleep 0.1; echo up; exec sleep 30"), shell("exit 0")}));
  EXPECT_FALSE(result.ended_early);
  EXPECT_TRUE(result.finished);
}

TEST_F(Beside, NothingStartsWithoutIt) {
  listener_.fail_ = true;
  const CancelToken cancel;
  const TargetResult result = run_target(spec({shell("exit 0")}), cancel);
  EXPECT_THAT(result.infra_error, HasSubstr("no companion today"));
  EXPECT_THAT(result.workers, IsEmpty());
  EXPECT_EQ(listener_.stops_, 0);
}

TEST_F(Beside, StopIsRunOnceBeforeTheKill) {
  TargetSpec run =
      spec({shell("trap 'cat stop > seen; exit 0' TERM; echo up; while :; do sleep 0.01; "
                  "done")});
  run.workers[0].cwd = run.stop.cwd = dir_.path().string();
  run.stop.argv = shell("echo $WHO >> stop");
  run.stop.env = {{"WHO", "me"}};
  const TargetResult result = run_clean(run);
  ASSERT_EQ(result.trace.of("stop").size(), 1u);
  EXPECT_EQ(result.trace.of("stop")[0]->num("exit_code", -1), 0);
  std::ifstream in(dir_.path() / "seen");
  std::string text;
  std::getline(in, text);
  EXPECT_EQ(text, "me");  // it was over when SIGTERM came
}

TEST_F(Beside, StopIsRunWhereEverybodyEndedToo) {
  listener_.waits_ = true;
  TargetSpec run = spec({shell("exit 3")});
  run.stop.argv = shell("exit 4");
  const TargetResult result = run_clean(run);
  ASSERT_EQ(result.trace.of("stop").size(), 1u);
  EXPECT_EQ(result.trace.of("stop")[0]->num("exit_code"), 4);
  EXPECT_EQ(result.first_failed_rank, 0);
  EXPECT_EQ(result.workers[0].exit_code, 3);
}

TEST_F(Beside, AStopThatCannotBeStartedOrHangsStopsNothing) {
  TargetSpec run = spec({shell("echo up; exec sleep 30")});
  run.stop.argv = {"no-such-program-at-all"};
  EXPECT_THAT(run_clean(run).trace.of("stop")[0]->str("error"), HasSubstr("no-such-program"));
  Listener again;
  run.companion = &again;
  run.stop.argv = shell("sleep 30 & wait");
  run.stop.deadline_s = 0.1;
  EXPECT_TRUE(run_clean(run).trace.of("stop")[0]->flag("timed_out"));
}

TEST(SinkQueue, BoundedAndInOrder) {
  constexpr std::size_t kMost = 100;
  SinkQueue queue(kMost);
  for (std::size_t i = 0; i < kMost + 5; ++i) {
    queue.add(said("", static_cast<std::int64_t>(i)));
  }
  EXPECT_EQ(queue.dropped(), 5u);
  const auto events = queue.take();
  ASSERT_EQ(events.size(), kMost);
  EXPECT_EQ(events.front().t_ns, 0);
  EXPECT_EQ(events.back().t_ns, static_cast<std::int64_t>(kMost) - 1);
  EXPECT_THAT(queue.take(), IsEmpty());
}

}  // namespace
}  // namespace warmgate::target
