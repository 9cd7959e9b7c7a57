#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/jit/jit.h"
#include "kernels/jit/nvrtc.h"

namespace warmgate::jit {
namespace {

using ::testing::HasSubstr;

TEST(Architectures, WhatTheCompilerLacksIsNamedWithWhatItHas) {
  if (!nvrtc().available) {
    EXPECT_EQ(no_such_architecture("sm_999"), "");  // nobody is there who could know
    return;
  }
  for (const char* none : {"sm_42", "sm_999", "sm_80a", "sm_91"}) {
    const std::string why = no_such_architecture(none);
    EXPECT_THAT(why, HasSubstr("has no " + std::string(none)));
    EXPECT_THAT(why, HasSubstr("it has sm_"));
    EXPECT_EQ(no_such_architecture(none), why);
  }
}

// The list that is answered without asking must agree with the library.
TEST(Architectures, WhatIsTakenForGrantedIsThere) {
  const NvrtcFile file = find_nvrtc();
  if (file.path.empty()) GTEST_SKIP() << file.why_not;
  const Nvrtc library(file.path);
  for (const char* arch :
       {"sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_120", "sm_120a"}) {
    if (!no_such_architecture(arch).empty()) continue;
    NvrtcRequest nothing;
    nothing.name = "nothing.cu";
    nothing.source = "\n";
    nothing.options = {std::string("-arch=") + arch};
    EXPECT_TRUE(library.compile(nothing).ok) << arch;
  }
}

}  // namespace
}  // namespace warmgate::jit
