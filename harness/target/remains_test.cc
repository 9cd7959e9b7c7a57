#include "harness/target/remains.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <fstream>

#include "harness/target/test_support.h"

namespace warmgate::target::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::size_t kMost = 20;

TEST(SharedMemory, WhatWasThereBeforeAndWhatIsOthersIsNotListed) {
  const TempDir dir;
  std::ofstream(dir.path() / "old") << "x";
  const SharedMemoryWatch watch(dir.path().string());
  EXPECT_THAT(watch.fresh({}, {}, kMost), IsEmpty());
  const int fd = ::open((dir.path() / "in-use").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  EXPECT_THAT(watch.fresh({}, {}, kMost), IsEmpty()) << "this process has it open";
  ASSERT_EQ(::ftruncate(fd, 4096), 0);
  void* memory = ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0);
  ASSERT_NE(memory, MAP_FAILED);
  ::close(fd);
  EXPECT_THAT(watch.fresh({}, {}, kMost), IsEmpty()) << "this process has it mapped";
  const auto ours = watch.fresh({}, {::getpid()}, kMost);
  ASSERT_EQ(ours.size(), 1u);
  EXPECT_TRUE(ours[0].of_run);
  ::munmap(memory, 4096);
  const auto nobodys = watch.fresh({}, {}, kMost);
  ASSERT_EQ(nobodys.size(), 1u);
  EXPECT_FALSE(nobodys[0].of_run);
  EXPECT_THAT(nobodys[0].why, HasSubstr("cannot be told"));
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(nobodys[0].path.c_str(), 12345, 12345), 0);
    EXPECT_THAT(watch.fresh({}, {}, kMost), IsEmpty());
  }
}

TEST(SharedMemory, ANameThatIsMadeAnewIsNew) {
  const TempDir dir;
  std::ofstream(dir.path() / "other") << "x";  // so that the inode is not given out again
  std::ofstream(dir.path() / "name") << "x";
  const SharedMemoryWatch watch(dir.path().string());
  std::ofstream(dir.path() / "fresh") << "x";
  fs::rename(dir.path() / "fresh", dir.path() / "name");
  EXPECT_EQ(watch.fresh({}, {}, kMost).size(), 1u);
}

TEST(SharedMemory, APidIsANumberOfItsOwn) {
  const TempDir dir;
  const SharedMemoryWatch watch(dir.path().string());
  for (const char* name :
       {"torch_4711_1", "4711", "sem.4711-x", "a4711", "14711", "47110", "4711b", "x_12"})
    std::ofstream(dir.path() / name) << "x";
  std::set<std::string> of_run;
  for (const SharedMemory& each : watch.fresh({4711, 12}, {}, kMost)) {
    if (each.of_run) of_run.insert(fs::path(each.path).filename());
  }
  EXPECT_EQ(of_run, (std::set<std::string>{"4711", "sem.4711-x", "torch_4711_1"}));
  EXPECT_EQ(watch.fresh({4711}, {}, 3).size(), 3u);
}

TEST(SharedMemory, AFolderThatIsNotThere) {
  const SharedMemoryWatch watch("/nonexistent");
  EXPECT_THAT(watch.fresh({1}, {1}, kMost), IsEmpty());
}

TEST(Ports, OfThisProcess) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  socklen_t size = sizeof address;
  ASSERT_EQ(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::string name = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  EXPECT_THAT(listening_ports(::getpid()), Not(Contains(name))) << "bound, but nobody listens";
  ASSERT_EQ(::listen(fd, 1), 0);
  EXPECT_THAT(listening_ports(::getpid()), Contains(name));
  ::close(fd);
  EXPECT_THAT(listening_ports(::getpid()), Not(Contains(name)));
  EXPECT_THAT(listening_ports(0), IsEmpty());
}

std::vector<const trace::Event*> leftovers(const TargetResult& result, const std::string& what) {
  std::vector<const trace::Event*> out;
  for (const trace::Event* e : result.trace.of("leftover")) {
    if (e->str("what") == what) out.push_back(e);
  }
  return out;
}

TEST(Remains, SharedMemoryThatAWorkerLeft) {
  const TempDir dir;
  TargetSpec spec;
  spec.run_dir = dir.path();
  spec.workers = {worker({"/bin/sh", "-c", "echo x > /dev/shm/warmgate-test_$$_0"})};
  const TargetResult result = run_target(spec, CancelToken());
  const auto left = leftovers(result, "shm");
  ASSERT_EQ(left.size(), 1u);
  EXPECT_TRUE(left[0]->flag("of_run"));
  EXPECT_TRUE(left[0]->flag("removed"));
  EXPECT_FALSE(std::filesystem::exists(left[0]->str("path")));
}

TEST(Remains, APortThatADescendantStillListensOn) {
  const TempDir dir;
  TargetSpec spec;
  spec.run_dir = dir.path();
  spec.deadlines.settle_s = 0.3;
  // The worker ends when its child listens.
  spec.workers = {worker({"python3", "-c",
                          "import os, socket, time\n"
                          "r, w = os.pipe()\n"
                          "if os.fork() == 0:\n"
                          "    os.setsid()\n"
                          "    s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen()\n"
                          "    os.write(w, b'x'); os.close(1); os.close(2); time.sleep(60)\n"
                          "os.read(r, 1)\n"})};
  const TargetResult result = run_target(spec, CancelToken());
  ASSERT_EQ(leftovers(result, "process").size(), 1u);
  const auto ports = leftovers(result, "port");
  ASSERT_EQ(ports.size(), 1u);
  EXPECT_THAT(ports[0]->str("port"), HasSubstr("127.0.0.1:"));
  EXPECT_EQ(ports[0]->num("pid"), leftovers(result, "process")[0]->num("pid"));
  EXPECT_THAT(ports[0]->str("cmd"), HasSubstr("python3"));
}

}  // namespace
}  // namespace warmgate::target::testing
