// Linked into every test program: where the sources and the programs are, unless the environment
// says otherwise. Here and not as a ctest property, so that a test program runs by hand as well.
#include <cstdlib>

namespace {

const bool set = [] {
  ::setenv("WARMGATE_SOURCE_DIR", WARMGATE_TEST_SOURCE_DIR, 0);
  ::setenv("WARMGATE_BIN_DIR", WARMGATE_TEST_BIN_DIR, 0);
  return true;
}();

}  // namespace
