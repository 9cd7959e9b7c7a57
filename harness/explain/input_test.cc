#include "harness/explain/input.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace warmgate::explain {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;

class InputTest : public testing::Test {
 protected:
  void SetUp() override {
    ::signal(SIGPIPE, SIG_IGN);  // as the program does
    std::string name = (fs::temp_directory_path() / "warmgate-input-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return folder_ / name;
  }
  fs::path shell(const std::string& name, const std::string& command) {
    const std::string line = "cd " + folder_.string() + " && " + command;
    EXPECT_EQ(std::system(line.c_str()), 0) << line;
    return folder_ / name;
  }
  static std::string all_of(Input& input) {
    std::string out;
    char buffer[4096];
    while (const std::size_t got = input.read(buffer, sizeof buffer)) out.append(buffer, got);
    return out;
  }
  static std::string problem(const std::string& name) {
    try {
      Input input(name);
      (void)all_of(input);
      return "";
    } catch (const InputError& error) {
      return error.what();
    }
  }
  fs::path folder_;
};

TEST_F(InputTest, AFileAsItIs) {
  const std::string text("one\r\ntwo\0three\n\xff", 16);
  Input input(write("a.log", text));
  EXPECT_EQ(all_of(input), text);
  EXPECT_EQ(input.bytes(), text.size());
  EXPECT_THAT(input.trouble(), IsEmpty());
}

TEST_F(InputTest, ShortAndEmptyFiles) {
  for (const std::string& text :
       {std::string(), std::string("x"), std::string("\x1f"), std::string("\x28\xb5\x2f"),
        std::string("BZh"), std::string("BZhello, a text that only looks so")}) {
    Input input(write("short", text));
    EXPECT_EQ(all_of(input), text);
  }
}

TEST_F(InputTest, Archives) {
  std::string text;
  for (int i = 0; i < 20000; ++i) text += "line " + std::to_string(i) + "\n";
  write("a", text);
  for (const auto& [name, command] :
       {std::pair{"a.gz", "gzip -c a > a.gz"}, std::pair{"a.zst", "zstd -qc a > a.zst"},
        std::pair{"a.xz", "xz -c a > a.xz"}, std::pair{"two.gz", "cat a.gz a.gz > two.gz"}}) {
    // What is not on this machine cannot be tried on it.
    const std::string program = std::string(command).substr(0, std::string(command).find(' '));
    if (std::system(("command -v " + program + " >/dev/null").c_str()) != 0) continue;
    Input input(shell(name, command));
    const std::string out = all_of(input);
    EXPECT_EQ(out.substr(0, text.size()), text) << name;
    EXPECT_THAT(input.trouble(), IsEmpty()) << name;
  }
}

TEST_F(InputTest, ATruncatedArchiveGivesWhatItHolds) {
  std::string text;
  for (int i = 0; i < 50000; ++i) text += "line " + std::to_string(i * 7919) + "\n";
  write("a", text);
  shell("a.gz", "gzip -c a > whole.gz && head -c 40000 whole.gz > a.gz");
  Input input(folder_ / "a.gz");
  const std::string out = all_of(input);
  EXPECT_GT(out.size(), 10000u);
  EXPECT_EQ(text.compare(0, out.size(), out), 0);
  EXPECT_THAT(input.trouble(), HasSubstr("cut off after " + std::to_string(out.size())));
  EXPECT_THAT(input.trouble(), HasSubstr("unexpected end of file"));
}

TEST_F(InputTest, ADamagedArchiveIsSaid) {
  write("a.gz", "\x1f\x8b\x08garbage that is no deflate stream at all");
  Input input(folder_ / "a.gz");
  (void)all_of(input);
  EXPECT_THAT(input.trouble(), HasSubstr("gzip"));
}

TEST_F(InputTest, ABombIsReadInPieces) {
  shell("bomb.gz", "head -c 16M /dev/zero | gzip -1 > bomb.gz");
  Input input(folder_ / "bomb.gz");
  rusage before{}, after{};
  ::getrusage(RUSAGE_SELF, &before);
  char buffer[65536];
  std::uint64_t sum = 0;
  while (const std::size_t got = input.read(buffer, sizeof buffer)) sum += got;
  ::getrusage(RUSAGE_SELF, &after);
  EXPECT_EQ(sum, 16u << 20);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 4 * 1024);  // KiB
}

TEST_F(InputTest, AnArchiveThatNobodyFinishesReadingLeavesNoProcess) {
  shell("big.gz", "head -c 32M /dev/zero | gzip -1 > big.gz");
  {
    Input input(folder_ / "big.gz");
    char buffer[16];
    EXPECT_GT(input.read(buffer, sizeof buffer), 0u);
  }
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);  // no child is left
  EXPECT_EQ(errno, ECHILD);
}

TEST_F(InputTest, WhatIsNoLog) {
  EXPECT_THAT(problem((folder_ / "missing").string()), HasSubstr("No such file"));
  EXPECT_THAT(problem(folder_.string()), HasSubstr("a folder; name the logs in it"));
  EXPECT_THAT(problem("/dev/zero"), HasSubstr("a device"));
  EXPECT_THAT(problem("/dev/null"), HasSubstr("a device"));
  EXPECT_THAT(problem(write("a.zip", "PK\x03\x04....").string()), HasSubstr("zip archive"));
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(problem(pipe.string()), HasSubstr("named pipe"));
  if (::geteuid() != 0) {
    const fs::path secret = write("secret", "x");
    ::chmod(secret.c_str(), 0);
    EXPECT_THAT(problem(secret.string()), HasSubstr("Permission denied"));
  }
}

TEST_F(InputTest, ADescriptorOfAShell) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "a line\n", 7), 7);
  ::close(ends[1]);
  Input input("/dev/fd/" + std::to_string(ends[0]));
  EXPECT_EQ(all_of(input), "a line\n");
  ::close(ends[0]);
}

TEST_F(InputTest, AnUnpackerThatIsNotThere) {
  write("a.gz", "\x1f\x8b\x08 something");
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", folder_.c_str(), 1);
  EXPECT_THAT(problem((folder_ / "a.gz").string()), HasSubstr("gzip cannot be started"));
  ::setenv("PATH", path.c_str(), 1);
}

}  // namespace
}  // namespace warmgate::explain
