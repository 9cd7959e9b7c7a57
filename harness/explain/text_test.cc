#include "harness/explain/text.h"

#include <gtest/gtest.h>

#include "harness/explain/stamps.h"
#include "harness/explain/tracebacks.h"
#include "harness/explain/workers.h"

namespace warmgate::explain::internal {
namespace {

Line line_of(TextLayer& layer, std::string_view raw) {
  Line line;
  layer.read(raw, line);
  return line;
}

TEST(Prefixes, OfEveryAge) {
  struct Case {
    const char* raw;
    const char* worker;
    const char* message;
    Form form;
  };
  for (const Case& c : std::vector<Case>{
           {"INFO 11-20 14:10:00 config.py:350] m", "", "m", Form::kVllm},
           {"INFO 11-20 14:10:00 [config.py:350] m", "", "m", Form::kVllm},
           {"(VllmWorkerProcess pid=7) INFO 11-20 14:10:00 [a.py:3] m", "VllmWorkerProcess", "m",
            Form::kVllm},
           {"(VllmWorker rank=1 pid=42) ERROR 05-12 11:01:11 [m.py:4] m", "rank=1", "m",
            Form::kVllm},
           {"(EngineCore_0 pid=7) (VllmWorker PP0_TP3 pid=8) INFO 05-12 11:01:11 [m.py:4] m",
            "PP0_TP3", "m", Form::kVllm},
           {"(ServeReplica:a:b pid=1) (EngineCore pid=2) (RayWorkerProc pid=3, ip=10.0.0.1) "
            "(Worker_TP1 pid=4) INFO 05-12 11:01:11 [m.py:4] m [repeated 3x across cluster]",
            "Worker_TP1", "m", Form::kVllm},
           {"(Worker_TP0 pid=3) [Stage-1] INFO 05-12 11:01:11 [m.py:4] m", "Worker_TP0", "m",
            Form::kVllm},
           {"[2025-11-30 13:00:09 TP0] m", "TP0", "m", Form::kSglangRank},
           {"[2025-11-30 13:00:09.123 DP1 PP0 TP3 EP3] m", "DP1 PP0 TP3 EP3", "m",
            Form::kSglangRank},
           {"[13:00:09 TP0] m", "TP0", "m", Form::kSglangRank},
           {"[2025-11-30 13:00:09] m", "", "m", Form::kSglang},
           {"[01/15/2026-07:00:02] [TRT-LLM] [RANK 1] [I] m", "RANK 1", "m", Form::kTrt},
           {"[01/15/2026-07:00:02] [TRT-LLM] [E] [executor][RANK 2] m", "RANK 2", "m", Form::kTrt},
           {"[TensorRT-LLM][INFO] m", "", "m", Form::kTrtCpp},
           {"[TM][ERROR] m", "", "m", Form::kTurbomind},
           {"2025-04-01 10:00:00,123 - lmdeploy - INFO - a.py:3 - m", "", "m", Form::kLmdeploy},
           {"0.12.990.471 E m", "", "m", Form::kLlama},
           {"[8081] 0.12.990.471 E m", "", "m", Form::kLlama},
           {"2025-01-20T09:00:03.300000Z  INFO shard-manager: text_generation_launcher: m rank=0",
            "rank=0", "m rank=0", Form::kTgi},
           {"[rank3]:[W1208 08:30:14.000000000 ProcessGroupNCCL.cpp:1524] m", "rank3", "m",
            Form::kC10d},
           {"INFO:     m", "", "m", Form::kUvicorn},
           {"just a message", "", "just a message", Form::kNone},
       }) {
    TextLayer layer;
    const Line line = line_of(layer, c.raw);
    EXPECT_EQ(line.worker, c.worker) << c.raw;
    EXPECT_EQ(line.message, c.message) << c.raw;
    EXPECT_EQ(line.form, c.form) << c.raw;
  }
}

TEST(Prefixes, RanksOfLabels) {
  EXPECT_EQ(rank_of_label("TP3", 0), 3);
  EXPECT_EQ(rank_of_label("rank=1", 0), 1);
  EXPECT_EQ(rank_of_label("RANK 2", 0), 2);
  EXPECT_EQ(rank_of_label("device 1", 0), 1);
  EXPECT_EQ(rank_of_label("Worker_PP2", 0), 2);
  EXPECT_EQ(rank_of_label("Worker_PP1_TP3", 4), 7);
  EXPECT_EQ(rank_of_label("Worker_PP1_TP3", 0), -1) << "how many ranks a stage has is not known";
  EXPECT_EQ(rank_of_label("EngineCore_DP0", 0), -1);
  EXPECT_EQ(rank_of_label("HTTP2", 0), -1);
}

TEST(Stamps, OnlyWholeOnes) {
  double a = 0, b = 0;
  EXPECT_EQ(iso_stamp("2026-07-08T22:40:03.5Z x", a), 22u);
  EXPECT_EQ(iso_stamp("2026-07-09T00:40:03.5+02:00 x", b), 27u);
  EXPECT_DOUBLE_EQ(a, b);
  EXPECT_EQ(iso_stamp("2026-13-08T22:40:03Z", a), 0u);
  EXPECT_EQ(iso_stamp("2026-07-08T22:4", a), 0u);
  EXPECT_EQ(since_start_stamp("0.12.990.471 E", a), 12u);
  EXPECT_NEAR(a, 12.990471, 1e-9);
  EXPECT_EQ(month_day_stamp("07-02 09:00:01 ", a), 14u);
  EXPECT_EQ(syslog_stamp("июл 08 22:40:03 host", a), 19u - 1u);
}

TEST(Bars, OfTqdmAndItsRelatives) {
  Bar bar;
  ASSERT_TRUE(read_bar(
      "Loading safetensors checkpoint shards:  50% Completed | 3/6 [00:02<00:02,  1.21it/s]", bar));
  EXPECT_EQ(bar.done, 3);
  EXPECT_EQ(bar.total, 6);
  EXPECT_EQ(bar.elapsed_s, 2);
  EXPECT_EQ(bar.title, "Loading safetensors checkpoint shards:");
  ASSERT_TRUE(read_bar("  0%|          | 0/7 [00:00<?, ?it/s]", bar));
  EXPECT_EQ(bar.total, 7);
  EXPECT_FALSE(read_bar("100% of 3/4", bar));
  EXPECT_FALSE(read_bar("%|| /", bar));
  EXPECT_EQ(glued_after_bar("  0%|   | 0/7 [00:00<?, ?it/s][2025-11-30 13:00:16 TP1] x"), 30u);
  EXPECT_EQ(glued_after_bar("  0%|   | 0/7 [00:00<?, ?it/s]"), std::string_view::npos);
}

TEST(Shown, IsAlwaysTextAndBounded) {
  EXPECT_EQ(shown("a\xFF"
                  "b"),
            "a\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(shown("\xED\xA0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(shown("tab\there"), "tab here");
  EXPECT_EQ(shown("ünï"), "ünï");
  EXPECT_LE(shown(std::string(1000, 'x'), 100).size(), 103u);
}

TEST(Exceptions, AndWhatIsNone) {
  Exception out;
  ASSERT_TRUE(read_exception("torch.OutOfMemoryError: CUDA out of memory.", out));
  EXPECT_EQ(out.type, "torch.OutOfMemoryError");
  EXPECT_EQ(out.message, "CUDA out of memory.");
  EXPECT_TRUE(read_exception("AssertionError", out));
  EXPECT_FALSE(read_exception("Process EngineCore_DP0:", out));
  EXPECT_FALSE(read_exception("    raise ValueError(", out));
  EXPECT_FALSE(read_exception("main: loading model", out));
  EXPECT_FALSE(read_exception("", out));
}

TEST(Innermost, LibrariesAreSkippedAndAShortenedLogIsSeenThrough) {
  const std::vector<std::string> ignore = {"site-packages/torch/"};
  const std::vector<Frame> frames = {{"/x/a.py", "outer", "inner()"},
                                     {"/x/b.py", "inner", "self.y = torch.f("},
                                     {"/site-packages/torch/f.py", "f", ""}};
  EXPECT_EQ(innermost(frames, false, ignore).function, "inner");
  EXPECT_EQ(innermost(frames, false, ignore).file, "b.py");
  const std::vector<Frame> cut = {{"/x/a.py", "warmup", "self.cuda_graph_warmup(bs)"},
                                  {"/site-packages/torch/graphs.py", "__exit__", ""}};
  EXPECT_EQ(innermost(cut, false, ignore).function, "cuda_graph_warmup");
  const std::vector<Frame> with = {{"/x/a.py", "warmup", "with torch.cuda.graph(g):"},
                                   {"/site-packages/torch/graphs.py", "__exit__", ""}};
  EXPECT_EQ(innermost(with, false, ignore).function, "warmup");
}

}  // namespace
}  // namespace warmgate::explain::internal
