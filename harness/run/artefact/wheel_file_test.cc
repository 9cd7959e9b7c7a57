// What is no wheel is refused before anything is installed from it.
#include "harness/run/artefact/wheel_file.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "harness/run/artefact/testing.h"

namespace warmgate::run::testing {
namespace {

using ::testing::HasSubstr;

class WheelFile : public ArtefactTest {
 protected:
  std::string why(const std::string& bytes) const {
    write_file(path("x.whl"), bytes);
    return message_of([&] { check_wheel_file(path("x.whl")); });
  }
  static std::string zip_with(const std::string& name) {
    auto files = distribution("engine", "1.0", {{"engine.py", ""}});
    files.emplace_back(name, "evil");
    return zip_of(files);
  }
};

TEST_F(WheelFile, AWheelIsFine) {
  EXPECT_EQ(why(zip_of(distribution("engine", "1.0", {{"engine.py", "x"}}))), "");
  EXPECT_EQ(why(zip_with("a..b/..c/d")), "") << "dots in names lead nowhere";
  EXPECT_EQ(why(zip_of(distribution("engine", "1.0", {})) + std::string()), "");
}

TEST_F(WheelFile, WhatIsNoZipIsSaidToBeNone) {
  for (const std::string& bytes : {std::string(), std::string("hello"), std::string(100000, 'P'),
                                   std::string("PK\x05\x06"), std::string(70000, '\0')}) {
    EXPECT_THAT(why(bytes), HasSubstr("it is no zip file, or its end is missing"));
  }
  const std::string whole = zip_of(distribution("engine", "1.0", {}));
  EXPECT_THAT(why(whole.substr(0, whole.size() - 1)), HasSubstr("its end is missing"));
  EXPECT_THAT(why(whole.substr(whole.size() / 2)),
              HasSubstr("its directory leads out of the file"));
  EXPECT_THAT(why(zip_of({{"readme.txt", "hi"}})), HasSubstr("so no wheel"));
}

TEST_F(WheelFile, NamesThatLeadOutAreRefused) {
  for (const char* name :
       {"../evil.pth", "/etc/cron.d/evil", "a/../../evil", "..", "a\\..\\b", "a/.."}) {
    EXPECT_THAT(why(zip_with(name)), HasSubstr("which leads out of its folder")) << name;
  }
  EXPECT_THAT(why(zip_with(std::string("a\0b", 3))), HasSubstr("leads out of its folder"));
  EXPECT_THAT(why(zip_with("")), HasSubstr("leads out of its folder"));
}

TEST_F(WheelFile, ADirectoryThatLiesIsDamaged) {
  const std::string whole = zip_of(distribution("engine", "1.0", {}));
  const std::size_t end = whole.size() - 22;
  const auto with = [&](std::size_t at, const std::string& bytes) {
    std::string out = whole;
    out.replace(at, bytes.size(), bytes);
    return out;
  };
  EXPECT_THAT(why(with(end + 16, std::string(4, '\x7f'))), HasSubstr("leads out of the file"));
  EXPECT_THAT(why(with(end + 12, std::string(4, '\x7f'))), HasSubstr("leads out of the file"));
  EXPECT_THAT(why(with(end + 16, std::string(4, '\xff'))), HasSubstr("its end is missing"))
      << "zip64 without its record";
  const std::size_t first = whole.find("PK\x01\x02");
  EXPECT_THAT(why(with(first + 28, "\xff\xff")), HasSubstr("its directory is damaged"));
  EXPECT_THAT(why(with(first, "XX")), HasSubstr("its directory is damaged"));
}

TEST_F(WheelFile, FilesThatAreNone) {
  EXPECT_THAT(message_of([&] { check_wheel_file(path("none")); }), HasSubstr("No such file"));
  EXPECT_THAT(message_of([&] { check_wheel_file(dir_.path()); }), HasSubstr("it is no file"));
  ::mkfifo(path("pipe").c_str(), 0600);
  EXPECT_THAT(message_of([&] { check_wheel_file(path("pipe")); }), HasSubstr("it is no file"));
}

TEST(WheelName, TellsDistributionAndVersion) {
  const WheelName name =
      read_wheel_name("vllm-0.23.1rc1.dev10+g837eae6458-cp38-abi3-manylinux1_x86_64.whl");
  EXPECT_EQ(name.distribution, "vllm");
  EXPECT_EQ(name.version, "0.23.1rc1.dev10+g837eae6458");
  EXPECT_EQ(read_wheel_name("a-1-2-py3-none-any.whl").version, "1") << "2 is the build tag";
  for (const char* wrong :
       {"", ".whl", "a.whl", "a-1.whl", "a-1-py3-none-any.zip", "a-1-py3-none.whl",
        "-a-1-py3-none-any.whl", "a/../b-1-py3-none-any.whl", "a b-1-py3-none-any.whl",
        "a-1-2-3-py3-none-any.whl"}) {
    EXPECT_THAT(message_of([&] { (void)read_wheel_name(wrong); }),
                HasSubstr("is no name of a wheel"))
        << wrong;
  }
}

TEST(WheelName, OfAUrlIsItsLastPart) {
  EXPECT_EQ(wheel_name_of_url("https://h/p/a-1%2Bg12-py3-none-any.whl?token=x#y"),
            "a-1+g12-py3-none-any.whl");
  for (const char* url :
       {"https://h/", "https://h/a-1-py3-none-any.whl/", "https://h/..%2fx.whl",
        "https://h/%2e%2e%2fa-1-py3-none-any.whl", "https://h/a-1-py3-none-any.whl%"}) {
    EXPECT_THAT(message_of([&] { (void)wheel_name_of_url(url); }),
                HasSubstr("is no name of a wheel"))
        << url;
  }
}

}  // namespace
}  // namespace warmgate::run::testing
