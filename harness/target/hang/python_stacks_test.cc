#include "harness/target/hang/python_stacks.h"

#include <gmock/gmock.h>

namespace warmgate::target {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(PythonStacks, OfFaulthandler) {
  const auto all = parse_faulthandler(
      "Thread 0x00007f3c (most recent call first):\n"
      "  File \"/usr/lib/python3.11/threading.py\", line 324 in wait\n"
      "  File \"/srv/engine.py\", line 7 in watch \"in\" it\n"
      "\n"
      "Current thread 0x00007f3d [python3] (most recent call first):\n"
      "  File \"/srv/a, b in c.py\", line 12 in step\n"
      "  <no Python frame>\n");
  ASSERT_THAT(all, SizeIs(2));
  EXPECT_EQ(all[0].name, "Thread 0x00007f3c");
  EXPECT_FALSE(all[0].current);
  ASSERT_THAT(all[0].frames, SizeIs(2));
  EXPECT_EQ(all[0].frames[0].function, "wait");
  EXPECT_EQ(all[0].frames[0].line, 324);
  EXPECT_TRUE(all[1].current);
  EXPECT_EQ(all[1].frames.at(0).file, "/srv/a, b in c.py");
  EXPECT_EQ(all[1].frames.at(0).function, "step");
}

TEST(PythonStacks, OfPySpy) {
  const auto all = parse_py_spy(
      "Process 12: python3 engine.py\nPython v3.11.2 (/usr/bin/python3.11)\n\n"
      "Thread 12 (active): \"MainThread\"\n"
      "    step (engine.py:12)\n"
      "    <module> (engine (copy).py:30)\n"
      "Thread 15 (idle): \"watch\"\n"
      "    wait (threading.py:324)\n");
  ASSERT_THAT(all, SizeIs(2));
  EXPECT_TRUE(all[0].current);
  EXPECT_EQ(all[0].frames.at(1).function, "<module> (engine");
  EXPECT_EQ(all[0].frames.at(0).line, 12);
  EXPECT_EQ(all[1].frames.at(0).file, "threading.py");
}

TEST(PythonStacks, TheThreadThatDoesNotOnlyWaitSaysMost) {
  const PythonThread joins{"main", true, {{"join", "/usr/lib/python3.11/threading.py", 1119}}};
  const PythonThread works{"w", false, {{"stuck", "/srv/engine.py", 3}}};
  const PythonThread current{"c", true, {{"step", "/srv/engine.py", 9}}};
  EXPECT_EQ(most_telling({joins, works})->name, "w");
  EXPECT_EQ(most_telling({works, joins, current})->name, "c");
  EXPECT_EQ(most_telling({{"idle", false, {}}, joins})->name, "main");
  EXPECT_EQ(most_telling({}), nullptr);
  EXPECT_TRUE(only_waits(joins));
  EXPECT_FALSE(only_waits(works));
}

TEST(PythonStacks, AreBoundedAndNothingElseIsTaken) {
  std::string many;
  for (int t = 0; t < 500; ++t) {
    many += "Thread 0x1 (most recent call first):\n";
    for (int f = 0; f < 100; ++f)
      many += "  File \"x.py\", line 1 in " + std::string(2000, 'f') + "\n";
  }
  const auto all = parse_faulthandler(many);
  ASSERT_THAT(all, SizeIs(64));
  EXPECT_THAT(all.back().frames, SizeIs(48));
  EXPECT_EQ(all.back().frames.back().function.size(), 512u);
  for (const char* text : {"", "\n\n", "  File \"x", "  File \"\", line  in ", "Segmentation fault",
                           "    (:)", "     (", "Thread"}) {
    for (const PythonThread& thread : parse_faulthandler(text))
      EXPECT_THAT(thread.frames, IsEmpty());
    for (const PythonThread& thread : parse_py_spy(text)) EXPECT_THAT(thread.frames, IsEmpty());
  }
}

}  // namespace
}  // namespace warmgate::target
