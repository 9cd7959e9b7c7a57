// Prints how far every op is from its oracle on fresh inputs.
//   build/bin/numerics_table [--seed N]
// Exit code 1 if a row is beyond its limit.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "kernels/numerics/cases.h"

int main(int argc, char** argv) {
  using namespace warmgate::numerics;
  std::uint64_t seed = fresh_seed();
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--seed") == 0 && i + 1 < argc) {
      seed = std::strtoull(argv[++i], nullptr, 10);
    } else {
      std::fprintf(stderr, "usage: numerics_table [--seed N]\n");
      return 2;
    }
  }
  std::printf("inputs of seed %llu\n", static_cast<unsigned long long>(seed));
  Table table;
  for (const Case& c : cases()) {
    Random random(seed, c.name);
    c.measure(random, table);
  }
  table.print(stdout);
  for (const Row& row : table.rows()) {
    if (!row.right()) return 1;
  }
  return 0;
}
