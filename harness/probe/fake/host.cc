// A program that a driver would inject the probe into: loads it, calls its one function as the
// driver does, and goes on. host PROBE [--cupti FILE] [--fork] [--twice] [--first] [--threads N]
// [--closes FILE] [--no-files]
#include <dlfcn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

void (*fake_call)(const char*, const void*) = nullptr;

void allocate(std::uint64_t where) {
  std::uint64_t out = where;
  const std::uint64_t params[2] = {reinterpret_cast<std::uint64_t>(&out), 4 << 20};
  if (fake_call != nullptr) fake_call("cuMemAlloc_v2", params);
}

template <typename F>
F find(void* library, const char* name) {
  return reinterpret_cast<F>(::dlsym(library, name));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  bool forks = false, twice = false, first = false, limits = false;
  const char* closes = nullptr;
  int threads = 0;
  void* cupti = nullptr;
  for (int i = 2; i < argc; ++i) {
    forks = forks || std::strcmp(argv[i], "--fork") == 0;
    twice = twice || std::strcmp(argv[i], "--twice") == 0;
    first = first || std::strcmp(argv[i], "--first") == 0;
    limits = limits || std::strcmp(argv[i], "--no-files") == 0;
    if (std::strcmp(argv[i], "--closes") == 0 && i + 1 < argc) closes = argv[++i];
    if (std::strcmp(argv[i], "--threads") == 0 && i + 1 < argc) threads = std::atoi(argv[++i]);
    if (std::strcmp(argv[i], "--cupti") == 0 && i + 1 < argc) {
      cupti = ::dlopen(argv[++i], RTLD_NOW | RTLD_GLOBAL);
      if (cupti == nullptr) return 3;
    }
  }
  if (first && cupti != nullptr) {  // somebody else was there before
    void* subscriber = nullptr;
    using Subscribe = int (*)(void**, void (*)(void*, int, std::uint32_t, const void*), void*);
    find<Subscribe>(cupti, "cuptiSubscribe")(
        &subscriber, [](void*, int, std::uint32_t, const void*) {}, nullptr);
  }
  void* probe = ::dlopen(argv[1], RTLD_NOW);
  if (probe == nullptr) {
    std::fprintf(stderr, "%s\n", ::dlerror());
    return 4;
  }
  const auto initialise = find<int (*)()>(probe, "InitializeInjection");
  if (initialise == nullptr || initialise() != 1) return 5;
  if (twice && initialise() != 1) return 6;
  if (cupti != nullptr) fake_call = find<void (*)(const char*, const void*)>(cupti, "fake_call");
  allocate(0x1000000);
  if (forks) {
    const pid_t child = ::fork();
    if (child == 0) {
      allocate(0x2000000);
      std::exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    if (status != 0) return 7;
  }
  if (closes) {  // as daemons do, and the number becomes a file of the host's own
    for (int fd = 3; fd < 100; ++fd) ::close(fd);
    std::FILE* mine = std::fopen(closes, "w");
    if (mine == nullptr) return 8;
    std::fputs("mine\n", mine);
    std::fflush(mine);
    allocate(0x3000000);
  }
  if (limits) {
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_FSIZE, &none);
    allocate(0x4000000);
  }
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([t] {
      for (std::uint64_t i = 0; i < 50; ++i)
        allocate(0x10000000 * static_cast<std::uint64_t>(t + 2) + i * 0x800000);
    });
  }
  for (std::thread& thread : all) thread.join();
  std::puts("done");
  return 0;
}
