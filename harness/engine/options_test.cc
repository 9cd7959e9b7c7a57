#include "harness/engine/options.h"

#include <gtest/gtest.h>

namespace warmgate::engine {
namespace {

std::string refusal(const std::vector<std::string>& arguments) {
  try {
    parse_options(arguments);
  } catch (const BadUsage& error) {
    return error.what();
  }
  return "";
}

TEST(Options, BothSpellings) {
  const Options a = parse_options({"--config", "c.json", "--rank=1", "--world", "2",
                                   "--collectives-fd=7", "--kernel-cache", "none", "--jit=host"});
  EXPECT_EQ(a.config, "c.json");
  EXPECT_EQ(a.rank, 1);
  EXPECT_EQ(a.world, 2);
  EXPECT_EQ(a.collectives_fd, 7);
  EXPECT_TRUE(a.compiler.cache_dir.empty());
  EXPECT_EQ(a.compiler.backend, jit::Backend::kHost);
  EXPECT_EQ(parse_options({"--config=x", "--kernel-cache=/c"}).compiler.cache_dir, "/c");
}

TEST(Options, HelpAndVersionNeedNothingElse) {
  EXPECT_TRUE(parse_options({"--help"}).help);
  EXPECT_TRUE(parse_options({"--version"}).version);
  EXPECT_NE(usage().find("--collectives-fd"), std::string::npos);
}

TEST(Options, RefusalsSayWhatWouldBeRight) {
  EXPECT_EQ(refusal({}), "--config is missing");
  EXPECT_EQ(refusal({"--config"}), "'--config' has no value; see --help");
  EXPECT_EQ(refusal({"--confg", "x"}), "unknown argument '--confg'; see --help");
  EXPECT_EQ(refusal({"--config=x", "--rank", "1x"}), "--rank '1x': a number from 0 to 1023");
  EXPECT_EQ(refusal({"--config=x", "--rank="}), "--rank '': a number from 0 to 1023");
  EXPECT_EQ(refusal({"--config=x", "--rank=-1"}), "--rank '-1': a number from 0 to 1023");
  EXPECT_EQ(refusal({"--config=x", "--world=99999999999"}),
            "--world '99999999999': a number from 1 to 1024");
  EXPECT_EQ(refusal({"--config=x", "--rank=2", "--world=2", "--collectives-fd=3"}),
            "--rank 2 of --world 2: ranks count from 0");
  EXPECT_EQ(refusal({"--config=x", "--world=2"}),
            "--collectives-fd is missing: more than one rank needs it");
  EXPECT_EQ(refusal({"--config=x", "--jit=gcc"}), "--jit 'gcc': auto, nvrtc or host");
}

}  // namespace
}  // namespace warmgate::engine
