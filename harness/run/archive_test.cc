// Archives: what pack() writes unpack() gives back; everything else that tar can say is refused.
#include "harness/run/archive.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>
#include <functional>

#include "harness/run/json_text.h"
#include "harness/run/run_dir.h"

namespace warmgate::run {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

void put_octal(std::string& header, std::size_t at, std::size_t size, std::size_t value) {
  std::string digits;
  for (std::size_t i = 0; i + 1 < size; ++i, value /= 8)
    digits.insert(digits.begin(), static_cast<char>('0' + value % 8));
  header.replace(at, digits.size(), digits);
}

void seal(std::string& header) {
  header.replace(148, 8, "        ");
  std::size_t sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  put_octal(header, 148, 7, sum);
}

std::string tar_entry(const std::string& name, const std::string& bytes, char type = '0',
                      const std::function<void(std::string&)>& spoil = {}) {
  std::string header(512, '\0');
  header.replace(0, name.size(), name);
  put_octal(header, 100, 8, 0644);
  put_octal(header, 124, 12, bytes.size());
  header[156] = type;
  header.replace(257, 6, std::string("ustar\0", 6));
  header.replace(263, 2, "00");
  if (spoil) spoil(header);
  seal(header);
  return header + bytes + std::string((512 - bytes.size() % 512) % 512, '\0');
}

std::string tar_of(const std::string& entries) { return entries + std::string(1024, '\0'); }

std::string refusal(const std::string& tar, const ArchiveLimits& limits = {}) {
  try {
    read_tar(tar, limits, [](const ArchiveEntry&) {});
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST(Archive, GivesBackWhatWasPacked) {
  // A run's folder holds a mark of its owner; what is packed lies below.
  const RunDir dir("test"), to("test");
  const fs::path from = dir.path() / "in";
  write_whole(from / "a/b/c.txt", "hello");
  write_whole(from / "empty", "");
  write_whole(from / (std::string(90, 'x') + "/" + std::string(90, 'y')), "long");
  write_whole(from / "run.sh", "#!/bin/sh\n");
  fs::permissions(from / "run.sh", fs::perms::owner_exec, fs::perm_options::add);
  for (const char* name : {"x.tar", "x.tar.gz", "x.tar.zst", "anything"}) {
    const RunDir there("test");
    const fs::path back = there.path() / "out", files = there.path() / "files";
    fs::create_directories(back);
    fs::create_directories(files);
    const fs::path file = files / name;
    try {
      pack(from, file);
    } catch (const std::runtime_error& error) {
      // zstd may be missing; then it is said, and nothing is left.
      EXPECT_THAT(name, HasSubstr("zst")) << error.what();
      EXPECT_TRUE(fs::is_empty(files));
      continue;
    }
    EXPECT_TRUE(looks_like_archive(file));
    unpack(file, back);
    EXPECT_EQ(read_whole(back / "a/b/c.txt"), "hello");
    EXPECT_EQ(read_whole(back / "empty"), "");
    EXPECT_EQ(read_whole(back / std::string(90, 'x') / std::string(90, 'y')), "long");
    struct stat info {};
    ASSERT_EQ(::stat((back / "run.sh").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700u);
    ASSERT_EQ(::stat((back / "empty").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u);
  }
  // The same contents are the same bytes.
  pack(from, to.path() / "1.tar");
  pack(from, to.path() / "2.tar");
  EXPECT_EQ(read_whole(to.path() / "1.tar"), read_whole(to.path() / "2.tar"));
}

// The file, that it is damaged, and in the unpacker's own words why, on one line.
TEST(Archive, ABrokenOneIsSaidInTheWordsOfItsProgram) {
  const RunDir dir("test");
  write_whole(dir.path() / "in/x", std::string(100000, 'x'));
  pack(dir.path() / "in", dir.path() / "x.tar.gz");
  const std::string whole = read_whole(dir.path() / "x.tar.gz");
  ASSERT_GT(whole.size(), 60u);
  std::string turned = whole;
  turned[whole.size() / 2] = static_cast<char>(~turned[whole.size() / 2]);
  for (const std::string& bytes :
       {whole.substr(0, whole.size() / 2), turned, whole.substr(0, 12)}) {
    const fs::path file = dir.path() / "broken.tar.gz";
    write_whole(file, bytes);
    fs::create_directories(dir.path() / "to");
    try {
      unpack(file, dir.path() / "to");
      ADD_FAILURE() << "taken";
    } catch (const std::runtime_error& error) {
      const std::string text = error.what();
      EXPECT_TRUE(text.starts_with(file.string() + " is damaged: ")) << text;
      EXPECT_THAT(text, HasSubstr("gzip: ")) << text;
      EXPECT_EQ(text.find('\n'), text.npos) << text;
    }
    fs::remove_all(dir.path() / "to");
  }
}

TEST(Archive, HostilePathsAreRefused) {
  for (const std::string name : {"/etc/passwd", "../x", "a/../../x", "a/..", "..", "a//b", "./../x",
                                 "a/./b", "a\nb", "a\\b", "\x1b[2J"}) {
    EXPECT_NE(refusal(tar_of(tar_entry(name, "x"))), "") << name;
  }
  EXPECT_NE(refusal(tar_of(tar_entry(std::string("a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a"), "x"))), "");
  EXPECT_NE(
      refusal(tar_of(tar_entry("b", "x", '0', [](std::string& h) { h.replace(345, 2, ".."); }))),
      "");
  EXPECT_EQ(refusal(tar_of(tar_entry("./a/b", "x"))), "");
  EXPECT_EQ(refusal(tar_of(tar_entry("a", "", '5') + tar_entry("a/b", "x"))), "");
}

TEST(Archive, OnlyFilesAndFolders) {
  // Hard and symbolic links, devices, a fifo, extension headers of POSIX and GNU.
  for (const char type : {'1', '2', '3', '4', '6', '7', 'x', 'g', 'L', 'K', 'S', 'V', '\x01'})
    EXPECT_THAT(refusal(tar_of(tar_entry("a", "", type))), HasSubstr("neither a file")) << type;
  EXPECT_THAT(refusal(tar_of(tar_entry("a", "x", '5'))), HasSubstr("folder has contents"));
  EXPECT_THAT(refusal(tar_of(tar_entry("a", "1") + tar_entry("a", "2"))), HasSubstr("twice"));
  EXPECT_THAT(refusal(tar_of(tar_entry("a", "1") + tar_entry("./a", "2"))), HasSubstr("twice"));
}

TEST(Archive, DamageIsRefused) {
  const std::string good = tar_of(tar_entry("a", std::string(700, 'x')) + tar_entry("b", "y"));
  ASSERT_EQ(refusal(good), "");
  for (std::size_t size = 0; size < good.size() - 1024; size += 100)
    EXPECT_NE(refusal(good.substr(0, size)), "") << size;
  std::string wrong = good;
  wrong[0] = 'b';
  EXPECT_THAT(refusal(wrong), HasSubstr("damaged"));
  for (const char* size : {"77777777777", "-1", "zz", ""}) {
    const auto spoil = [&](std::string& header) {
      header.replace(124, 12, std::string(12, '\0'));
      header.replace(124, std::string(size).size(), size);
    };
    EXPECT_NE(refusal(tar_of(tar_entry("a", "x", '0', spoil))), "") << size;
  }
}

TEST(Archive, LimitsHold) {
  ArchiveLimits limits;
  limits.bytes = 1000;
  limits.entries = 3;
  EXPECT_EQ(refusal(tar_of(tar_entry("a", std::string(1000, 'x'))), limits), "");
  EXPECT_NE(refusal(tar_of(tar_entry("a", std::string(1001, 'x'))), limits), "");
  EXPECT_NE(
      refusal(tar_of(tar_entry("a", std::string(600, 'x')) + tar_entry("b", std::string(600, 'x'))),
              limits),
      "");
  std::string many;
  for (const char* name : {"a", "b", "c", "d"}) many += tar_entry(name, "");
  EXPECT_NE(refusal(tar_of(many), limits), "");
}

TEST(Archive, ABombIsStopped) {
  const RunDir dir("test"), to("test");
  write_whole(dir.path() / "in/zeros", std::string(20 << 20, '\0'));
  pack(dir.path() / "in", dir.path() / "bomb.tar.gz");
  ArchiveLimits limits;
  limits.bytes = 1 << 20;
  limits.entries = 10;
  EXPECT_LT(fs::file_size(dir.path() / "bomb.tar.gz"), std::uintmax_t{1} << 20);
  EXPECT_THROW(unpack(dir.path() / "bomb.tar.gz", to.path(), limits), std::runtime_error);
  EXPECT_FALSE(fs::exists(to.path() / "zeros"));
  write_whole(dir.path() / "cut.tar.gz", read_whole(dir.path() / "bomb.tar.gz").substr(0, 5000));
  EXPECT_THROW(unpack(dir.path() / "cut.tar.gz", to.path()), std::runtime_error);
  write_whole(dir.path() / "text.tar.gz", "no archive at all");
  EXPECT_FALSE(looks_like_archive(dir.path() / "text.tar.gz"));
  EXPECT_THROW(unpack(dir.path() / "text.tar.gz", to.path()), std::runtime_error);
}

}  // namespace
}  // namespace warmgate::run
