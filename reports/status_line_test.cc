#include "reports/status_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace warmgate::reports {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

struct Fixture {
  double now = 100;
  std::vector<std::string> written;
  StatusLine make(bool terminal, std::size_t width = 40) {
    StatusLine::Options options;
    options.terminal = terminal;
    options.style = {false, Charset::kAscii, width};
    return {options, [this](std::string_view text) { written.emplace_back(text); },
            [this] { return now; }};
  }
};

TEST(StatusLine, ShortWorkShowsNothing) {
  for (const bool terminal : {true, false}) {
    Fixture f;
    {
      StatusLine line = f.make(terminal);
      line.update("0/3 runs");
      f.now += 0.9;
      line.update("2/3 runs");
      line.tick();
    }
    EXPECT_THAT(f.written, IsEmpty());
  }
}

TEST(StatusLine, ATerminalGetsOneRewrittenLine) {
  Fixture f;
  {
    StatusLine line = f.make(true, 20);
    f.now += 2;
    line.update("1/3 runs  a scenario with a long name");
    line.update("2/3 runs");  // too soon after the last
    f.now += 1;
    line.tick();
  }
  ASSERT_EQ(f.written.size(), 3u);
  EXPECT_EQ(f.written[0], "\r\x1b[K2 s  1/3 runs  a...");
  EXPECT_EQ(f.written[1], "\r\x1b[K3 s  2/3 runs");
  EXPECT_EQ(f.written[2], "\r\x1b[K");  // gone before the report
}

TEST(StatusLine, ALogGetsAPlainLineNowAndThen) {
  Fixture f;
  {
    StatusLine line = f.make(false);
    for (int i = 0; i < 120; ++i) {
      f.now += 0.1;
      line.update(std::to_string(i) + " of 120");
    }
  }
  ASSERT_THAT(f.written, ::testing::SizeIs(3));  // at 1, 6 and 11 s
  for (const std::string& text : f.written) {
    EXPECT_THAT(text, Not(HasSubstr("\x1b")));
    EXPECT_EQ(text.back(), '\n');
  }
}

TEST(StatusLine, NothingAfterTheEnd) {
  Fixture f;
  StatusLine line = f.make(true);
  f.now += 2;
  line.update("x");
  line.finish();
  f.now += 2;
  line.update("y");
  line.tick();
  line.finish();
  EXPECT_EQ(f.written.size(), 2u);
}

TEST(StatusLine, NamesFromAScenarioCannotMoveTheCursor) {
  Fixture f;
  StatusLine line = f.make(true, 80);
  f.now += 2;
  line.update("\x1b[2Jboo\n::error::x");
  ASSERT_THAT(f.written, ::testing::SizeIs(1));
  EXPECT_EQ(f.written[0], "\r\x1b[K2 s  \\x1b[2Jboo\\n::error::x");
}

}  // namespace
}  // namespace warmgate::reports
