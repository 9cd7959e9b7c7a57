// Files that commands write, and the styles of streams.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "harness/cli/console.h"
#include "harness/cli/output_file.h"
#include "harness/cli/problems_text.h"
#include "harness/cli/process_for_test.h"

namespace warmgate::cli {
namespace {

using ::testing::HasSubstr;

int files_in(const fs::path& folder) {
  return static_cast<int>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(OutputFile, ReplacesWholeFilesAndLeavesNothingElse) {
  const TempDir dir;
  const fs::path file = dir.path() / "report.json";
  check_writable(file);
  EXPECT_FALSE(fs::exists(file));  // looking does not touch
  write_file(file, "one");
  EXPECT_EQ(slurp(file), "one");
  ::chmod(file.c_str(), 0640);
  write_file(file, "two");
  EXPECT_EQ(slurp(file), "two");
  struct stat info {};
  ASSERT_EQ(::stat(file.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640u);
  EXPECT_EQ(files_in(dir.path()), 1);
}

TEST(OutputFile, FollowsLinks) {
  const TempDir dir;
  const fs::path file = dir.write("real.json", "old");
  fs::create_symlink(file, dir.path() / "link.json");
  write_file(dir.path() / "link.json", "new");
  EXPECT_TRUE(fs::is_symlink(dir.path() / "link.json"));
  EXPECT_EQ(slurp(file), "new");
}

TEST(OutputFile, SaysWhichPathAndWhy) {
  const TempDir dir;
  const auto message = [](const auto& call) {
    try {
      call();
    } catch (const std::runtime_error& e) {
      return std::string(e.what());
    }
    return std::string("nothing was thrown");
  };
  const fs::path lost = dir.path() / "no/such/report.json";
  EXPECT_THAT(message([&] { check_writable(lost); }), HasSubstr(lost.string()));
  EXPECT_THAT(message([&] { write_file(lost, "x"); }), HasSubstr("there is no folder"));
  EXPECT_THAT(message([&] { check_writable(dir.path()); }), HasSubstr("directory"));
  EXPECT_THAT(message([&] { write_file("/dev/full", "x"); }), HasSubstr("No space"));
}

TEST(OutputFile, ALinkToAFileThatIsNotThereMakesThatFile) {
  const TempDir dir;
  fs::create_symlink("real.json", dir.path() / "link.json");
  write_file(dir.path() / "link.json", "new");
  EXPECT_TRUE(fs::is_symlink(dir.path() / "link.json"));
  EXPECT_EQ(slurp(dir.path() / "real.json"), "new");
}

TEST(OutputFile, AppendingKeepsWithinTheLimit) {
  const TempDir dir;
  const fs::path file = dir.path() / "summary.md";
  const auto all = [](std::size_t room) { return std::string(room, 'x'); };
  append_file(file, 10, all);
  EXPECT_EQ(slurp(file), std::string(10, 'x'));
  EXPECT_THROW(append_file(file, 10, all), std::runtime_error);
  append_file(file, 14, all);
  EXPECT_EQ(slurp(file), std::string(10, 'x') + "\n\nxx");
  EXPECT_THROW(append_file(dir.path(), 10, all), std::runtime_error);
  EXPECT_THROW(append_file("/dev/full", 10, all), std::runtime_error);
}

TEST(OutputFile, DevicesAreWrittenTo) {
  check_writable("/dev/null");
  write_file("/dev/null", "x");
  EXPECT_FALSE(fs::is_regular_file("/dev/null"));
}

TEST(Outputs, TwoInOneFileAreTwo) {
  const TempDir dir;
  const fs::path folder = dir.path();
  const std::string small = dir.write("small.yaml", small_scenario()).string();
  const std::string out = (folder / "out").string();
  fs::create_symlink("out", folder / "link");  // to a file that is not there yet
  fs::create_directory_symlink(folder, folder / "again");
  for (const std::string& name : {out, (folder / "./x/../out").string(), (folder / "link").string(),
                                  (folder / "again/out").string()}) {
    for (const auto& [one, two] : {std::pair{"--json", "--junit"},
                                   {"--rows", "--json"},
                                   {"--markdown", "--rows"},
                                   {"--junit", "--markdown"}}) {
      const Ran ran = warmgate({"run", small, one, out, two, name});
      EXPECT_EQ(ran.code, 2) << one << " " << two << " " << name;
      EXPECT_THAT(ran.err, HasSubstr("is the file that --"));
      EXPECT_FALSE(fs::exists(out));
    }
  }
  EXPECT_EQ(warmgate({"run", small, "--json", "-", "--junit", "/dev/stdout"}).code, 2);
  EXPECT_EQ(warmgate({"run", small, "--junit", "-"}).code, 2);
  EXPECT_EQ(warmgate({"run", small, "--rows", small}).code, 2);
  EXPECT_THAT(slurp(small), HasSubstr("scenario: small"));
  EXPECT_EQ(warmgate({"run", small, "--json", "/dev/null", "--junit", "/dev/null"}).code, 0);
  EXPECT_EQ(warmgate({"step", small, "--json", out, "--rows", out}).code, 128);
}

class ConsoleStyle : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"NO_COLOR", "LC_ALL", "LC_CTYPE", "LANG", "COLUMNS"}) ::unsetenv(name);
    ::setenv("TERM", "xterm", 1);
  }
};

TEST_F(ConsoleStyle, ColourOnATerminalOnly) {
  EXPECT_TRUE(style_for({true, 80}, ColourChoice::kAuto).colour);
  EXPECT_FALSE(style_for({false, 0}, ColourChoice::kAuto).colour);
  EXPECT_TRUE(style_for({false, 0}, ColourChoice::kAlways).colour);
  EXPECT_FALSE(style_for({true, 80}, ColourChoice::kNever).colour);
  ::setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(style_for({true, 80}, ColourChoice::kAuto).colour);
  EXPECT_TRUE(style_for({true, 80}, ColourChoice::kAlways).colour);
  ::setenv("NO_COLOR", "", 1);  // empty means not set
  EXPECT_TRUE(style_for({true, 80}, ColourChoice::kAuto).colour);
  ::setenv("TERM", "dumb", 1);
  EXPECT_FALSE(style_for({true, 80}, ColourChoice::kAuto).colour);
}

TEST_F(ConsoleStyle, CharacterSetFollowsTheLocale) {
  EXPECT_EQ(style_for({}, ColourChoice::kAuto).charset, reports::Charset::kAscii);
  ::setenv("LANG", "en_US.UTF-8", 1);
  EXPECT_EQ(style_for({}, ColourChoice::kAuto).charset, reports::Charset::kUtf8);
  ::setenv("LC_ALL", "C", 1);
  EXPECT_EQ(style_for({}, ColourChoice::kAuto).charset, reports::Charset::kAscii);
  ::setenv("LC_ALL", "C.utf8", 1);
  EXPECT_EQ(style_for({}, ColourChoice::kAuto).charset, reports::Charset::kUtf8);
}

TEST_F(ConsoleStyle, WidthIsTheTerminals) {
  EXPECT_EQ(style_for({true, 132}, ColourChoice::kAuto).width, 132u);
  ::setenv("COLUMNS", "72", 1);
  EXPECT_EQ(style_for({true, 132}, ColourChoice::kAuto).width, 72u);
  EXPECT_EQ(style_for({false, 0}, ColourChoice::kAuto).width, 100u);
  ::setenv("COLUMNS", "-3", 1);
  EXPECT_EQ(style_for({true, 132}, ColourChoice::kAuto).width, 132u);
}

TEST(Problems, PointAtTheColumn) {
  const TempDir dir;
  const fs::path file = dir.write("s.yaml", "scenario: x\nlimits: {max_modle_len: 5}\n");
  const scenario::ScenarioError error(
      {{file.string(), 2, 10, "limits.max_modle_len", "unknown key"},
       {file.string(), 0, 0, "", "something else"}});
  const std::string text = problems_text(error, {false, reports::Charset::kAscii, 100});
  EXPECT_THAT(text, HasSubstr(file.string() + ":2:10: limits.max_modle_len: unknown key\n"));
  EXPECT_THAT(text, HasSubstr("    2 | limits: {max_modle_len: 5}\n                 ^\n"));
  EXPECT_THAT(text, HasSubstr("2 problems"));
}

TEST(Problems, HostileFilesAreShownAsText) {
  const TempDir dir;
  const fs::path file = dir.write("s.yaml", "a: \x1b[31m" + std::string(5000, 'x') + ": \xff\n");
  const scenario::ScenarioError error({{file.string(), 1, 4990, "a\x1b[2J", "::error::bad\x07"},
                                       {file.string(), 1, 999999, "", "column beyond the line"},
                                       {file.string(), 99, 1, "", "line beyond the file"}});
  const std::string text = problems_text(error, {false, reports::Charset::kAscii, 80});
  for (const char c : text) EXPECT_TRUE((c >= 0x20 && c < 0x7f) || c == '\n');
  EXPECT_THAT(text, HasSubstr("^"));
}

}  // namespace
}  // namespace warmgate::cli
