#include "harness/target/server/stores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "harness/target/server/page_cache.h"
#include "harness/target/server/tree.h"
#include "harness/target/test_support.h"

namespace warmgate::target {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::TempDir;

void write(const fs::path& path, const std::string& text = "x") {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

CacheStore store(const std::string& name, const std::string& variable, const std::string& folder,
                 const std::string& below = "") {
  CacheStore out;
  out.name = name;
  out.variable = variable;
  out.folder = folder;
  out.below = below;
  out.holds = "compiled";
  return out;
}

class Stores : public ::testing::Test {
 protected:
  Stores() {
    spec.run_dir = dir.path() / "run";
    spec.kept = dir.path() / "kept";
    spec.kept_key = "engine-1.0_abc";
    spec.env = {{"HOME", (dir.path() / "home").string()},
                {"TMPDIR", (dir.path() / "tmp").string()}};
    spec.stores = {store("engine", "ENGINE_ROOT", "~/.cache/engine"),
                   store("modelinfos", "", "modelinfos", "engine"),
                   store("deep_gemm", "DG_DIR", "deep_gemm", "engine"),
                   store("triton", "TRITON_DIR", "~/.triton"),
                   store("tilelang", "", "~/.tilelang")};
  }
  const PreparedStore& named(const std::string& name) {
    for (const PreparedStore& each : out.stores) {
      if (each.name == name) return each;
    }
    throw std::out_of_range(name);
  }
  fs::path home() const { return dir.path() / "home"; }
  TempDir dir;
  StoresSpec spec;
  PreparedStores out;
};

TEST_F(Stores, WhatIsNotAskedForStaysAndIsCounted) {
  write(home() / ".triton/a/k.cubin", "12345");
  write(home() / ".triton/a/k.lock");
  out = prepare_stores(spec);
  EXPECT_THAT(out.env, IsEmpty());
  EXPECT_THAT(out.problems, IsEmpty());
  const PreparedStore& triton = named("triton");
  EXPECT_EQ(triton.folder, home() / ".triton");
  EXPECT_EQ(triton.found, "warm");
  EXPECT_EQ(triton.files, 1u) << "locks are not counted";
  EXPECT_EQ(triton.bytes, 5u);
  EXPECT_EQ(triton.elsewhere, "");
  EXPECT_EQ(named("modelinfos").folder, home() / ".cache/engine/modelinfos");
  EXPECT_EQ(named("engine").found, "cold");
  EXPECT_FALSE(fs::exists(home() / ".cache")) << "nothing was made";
  EXPECT_FALSE(fs::exists(spec.run_dir));
  EXPECT_EQ(out.events(1).size(), 1u) << "only what was asked for or holds something";
}

TEST_F(Stores, ColdIsAFreshFolderAndItsChildrenMoveWithIt) {
  write(home() / ".cache/engine/modelinfos/m.json");
  spec.stores[0].set = {"ENGINE_PLAN=0", "ENGINE_LOG={folder}/log"};
  spec.asked = {{"engine", "cold"}, {"modelinfos", "cold"}};
  out = prepare_stores(spec);
  const PreparedStore& engine = named("engine");
  EXPECT_TRUE(engine.reached);
  EXPECT_EQ(engine.found, "cold");
  EXPECT_EQ(engine.folder, spec.run_dir / "stores/engine");
  EXPECT_TRUE(fs::is_empty(engine.folder));
  EXPECT_EQ(engine.elsewhere, home() / ".cache/engine");
  EXPECT_EQ(named("modelinfos").folder, engine.folder / "modelinfos");
  EXPECT_TRUE(named("modelinfos").reached);
  EXPECT_EQ(named("modelinfos").elsewhere, home() / ".cache/engine/modelinfos");
  EXPECT_EQ(named("deep_gemm").folder, engine.folder / "deep_gemm");
  EXPECT_EQ(out.env,
            (std::map<std::string, std::string>{{"ENGINE_ROOT", engine.folder.string()},
                                                {"ENGINE_PLAN", "0"},
                                                {"ENGINE_LOG", engine.folder.string() + "/log"}}));
  EXPECT_TRUE(fs::exists(home() / ".cache/engine/modelinfos/m.json")) << "nothing was removed";
  // A second preparation in the same run does not take the first one's folder for fresh.
  write(engine.folder / "left");
  out = prepare_stores(spec);
  EXPECT_TRUE(named("engine").reached);
  EXPECT_EQ(named("engine").folder, spec.run_dir / "stores/engine-1");
}

TEST_F(Stores, WarmIsWhatAnEarlierRunLeft) {
  spec.asked = {{"triton", "warm"}};
  out = prepare_stores(spec);
  const fs::path kept = spec.kept / "engine-1.0_abc" / "triton";
  EXPECT_EQ(named("triton").folder, kept);
  EXPECT_FALSE(named("triton").reached);
  EXPECT_EQ(named("triton").found, "cold");
  EXPECT_THAT(named("triton").note, HasSubstr("nothing is kept"));
  fs::create_directories(kept / "empty");
  EXPECT_FALSE((out = prepare_stores(spec), named("triton").reached)) << "folders are no entries";
  write(kept / "abc/k.cubin");
  out = prepare_stores(spec);
  EXPECT_TRUE(named("triton").reached);
  EXPECT_EQ(named("triton").found, "warm");
  EXPECT_EQ(out.env.at("TRITON_DIR"), kept.string());
  spec.kept_key = "other";
  EXPECT_FALSE((out = prepare_stores(spec), named("triton").reached));
}

TEST_F(Stores, AKeyThatWouldLeadElsewhereIsRefused) {
  spec.asked = {{"triton", "warm"}};
  for (const char* key : {"", "..", ".", "a/b", "../x", "a b"}) {
    spec.kept_key = key;
    EXPECT_EQ(prepare_stores(spec).problems.size(), 1u) << key;
  }
}

TEST_F(Stores, AFolderInPlaceOrACopyOfIt) {
  const fs::path mine = dir.path() / "mine";
  write(mine / "sub/k.cubin", "123");
  fs::create_symlink("sub/k.cubin", mine / "link");
  fs::create_symlink(".", mine / "loop");
  ::mkfifo((mine / "pipe").c_str(), 0600);
  struct timespec times[2] = {{1000, 0}, {1000, 0}};
  ::utimensat(AT_FDCWD, (mine / "sub/k.cubin").c_str(), times, 0);
  spec.asked = {{"triton", mine.string()}};
  out = prepare_stores(spec);
  EXPECT_EQ(named("triton").folder, mine);
  EXPECT_TRUE(named("triton").reached);
  EXPECT_EQ(out.env.at("TRITON_DIR"), mine.string());

  spec.asked = {{"triton", "copy:" + mine.string()}};
  out = prepare_stores(spec);
  const fs::path copy = named("triton").folder;
  EXPECT_EQ(copy, spec.run_dir / "stores/triton");
  EXPECT_TRUE(fs::is_regular_file(copy / "sub/k.cubin"));
  EXPECT_EQ(fs::read_symlink(copy / "link"), "sub/k.cubin");
  EXPECT_EQ(fs::read_symlink(copy / "loop"), ".");
  EXPECT_FALSE(fs::exists(copy / "pipe"));
  EXPECT_EQ(fs::last_write_time(copy / "sub/k.cubin"), fs::last_write_time(mine / "sub/k.cubin"));
  EXPECT_EQ(named("triton").files, 1u);
  EXPECT_EQ(named("triton").found, "warm");
}

TEST_F(Stores, WhatCannotBeIsSaid) {
  spec.asked = {{"tritn", "cold"}};
  EXPECT_THAT(prepare_stores(spec).problems, ElementsAre(HasSubstr("tritn; there are engine,")));
  spec.asked = {{"triton", "/nowhere/at/all"}};
  EXPECT_THAT(prepare_stores(spec).problems, ElementsAre(HasSubstr("/nowhere/at/all")));
  spec.asked = {{"triton", "hot"}};
  EXPECT_EQ(prepare_stores(spec).problems.size(), 1u);
  spec.asked = {{"triton", "copy:relative"}};
  EXPECT_EQ(prepare_stores(spec).problems.size(), 1u);
  spec.asked = {{"page_cache", "hot"}};
  EXPECT_EQ(prepare_stores(spec).problems.size(), 1u);
  EXPECT_FALSE(fs::exists(spec.run_dir));
}

TEST_F(Stores, WithoutAVariableNothingMoves) {
  spec.asked = {{"tilelang", "cold"}, {"modelinfos", "cold"}};
  out = prepare_stores(spec);
  EXPECT_THAT(out.problems, IsEmpty());
  EXPECT_FALSE(named("tilelang").reached);
  EXPECT_THAT(named("tilelang").note, HasSubstr("no variable"));
  EXPECT_FALSE(named("modelinfos").reached);
  EXPECT_THAT(named("modelinfos").note, HasSubstr("inside engine"));
  EXPECT_THAT(out.env, IsEmpty());
}

TEST_F(Stores, TheUsersOwnVariableIsWhereItIsNow) {
  spec.env["TRITON_DIR"] = (dir.path() / "own").string();
  write(dir.path() / "own/k");
  out = prepare_stores(spec);
  EXPECT_EQ(named("triton").folder, dir.path() / "own");
  EXPECT_EQ(named("triton").elsewhere, "");
  spec.asked = {{"triton", "cold"}};
  out = prepare_stores(spec);
  EXPECT_THAT(named("triton").note, HasSubstr("overridden"));
  EXPECT_EQ(named("triton").elsewhere, home() / ".triton");
  // A child with a variable of its own does not move with its parent.
  spec.env["DG_DIR"] = (dir.path() / "dg").string();
  spec.asked = {{"engine", "cold"}};
  out = prepare_stores(spec);
  EXPECT_EQ(named("deep_gemm").folder, dir.path() / "dg");
  EXPECT_EQ(named("deep_gemm").elsewhere, "");
}

TEST_F(Stores, AChildMayBeNamedByItsDefaultPlace) {
  spec.stores[1].folder = "~/.cache/engine/modelinfos";
  spec.stores[2].folder = "~/elsewhere/deep_gemm";  // not inside it after all
  EXPECT_EQ((out = prepare_stores(spec), named("modelinfos").folder),
            home() / ".cache/engine/modelinfos");
  spec.asked = {{"engine", "cold"}};
  out = prepare_stores(spec);
  EXPECT_EQ(named("modelinfos").folder, named("engine").folder / "modelinfos");
  EXPECT_EQ(named("modelinfos").elsewhere, home() / ".cache/engine/modelinfos");
  EXPECT_EQ(named("deep_gemm").folder, home() / "elsewhere/deep_gemm");
  EXPECT_EQ(named("deep_gemm").elsewhere, "");
  spec.asked.clear();
  spec.env["ENGINE_ROOT"] = "/own";
  EXPECT_EQ((out = prepare_stores(spec), named("modelinfos").folder), "/own/modelinfos");
}

TEST_F(Stores, OrderAndCirclesDoNotMatter) {
  std::swap(spec.stores[0], spec.stores[2]);
  spec.asked = {{"engine", "cold"}};
  out = prepare_stores(spec);
  EXPECT_EQ(named("deep_gemm").folder, named("engine").folder / "deep_gemm");
  spec.stores = {store("a", "", "x", "b"), store("b", "", "y", "a"), store("c", "C", "z", "c")};
  spec.asked = {{"c", "cold"}};
  out = prepare_stores(spec);
  EXPECT_TRUE(named("c").reached);
  EXPECT_EQ(named("a").found, "unknown");
}

TEST_F(Stores, OfAContainerNothingIsKnown) {
  spec.elsewhere = true;
  write(home() / ".triton/k");
  spec.asked = {{"triton", "cold"}};
  out = prepare_stores(spec);
  EXPECT_THAT(out.env, IsEmpty());
  ASSERT_EQ(out.stores.size(), 1u);
  EXPECT_FALSE(named("triton").reached);
  EXPECT_EQ(named("triton").found, "unknown");
  EXPECT_FALSE(fs::exists(spec.run_dir));
  EXPECT_EQ(out.events(1).size(), 1u);
}

TEST_F(Stores, APresetMayListThePageCache) {
  spec.stores = {store("page_cache", "", ""), store("triton", "TRITON_DIR", "~/.triton")};
  EXPECT_EQ(prepare_stores(spec).stores.size(), 1u);
  spec.asked = {{"page_cache", "cold"}};
  out = prepare_stores(spec);
  EXPECT_EQ(out.stores.size(), 2u);
  EXPECT_FALSE(named("page_cache").reached);
}

TEST_F(Stores, EventsCarryWhatWasAskedAndFound) {
  spec.asked = {{"triton", "warm"}};
  out = prepare_stores(spec);
  const auto events = out.events(9);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].ev, "store");
  EXPECT_EQ(events[0].t_ns, 9);
  EXPECT_EQ(events[0].src, "store");
  EXPECT_EQ(events[0].str("state_asked"), "warm");
  EXPECT_EQ(events[0].str("state_found"), "cold");
  EXPECT_FALSE(events[0].flag("reached", true));
  trace::parse_event(trace::to_line(events[0]));
}

TEST_F(Stores, APlaceThatCannotBeMadeIsTheMachinesFault) {
  write(dir.path() / "file");
  spec.run_dir = dir.path() / "file";
  spec.asked = {{"triton", "cold"}};
  EXPECT_THROW(prepare_stores(spec), fs::filesystem_error);
}

TEST(ExpandFolder, VariablesAndHome) {
  const std::map<std::string, std::string> env = {{"HOME", "/h"}, {"A", "/a"}, {"E", ""}};
  EXPECT_EQ(expand_folder("~/.x", env), "/h/.x");
  EXPECT_EQ(expand_folder("~", env), "/h");
  EXPECT_EQ(expand_folder("/x/~", env), "/x/~");
  EXPECT_EQ(expand_folder("~other/x", env), "~other/x");
  EXPECT_EQ(expand_folder("$A/b_$A", env), "/a/b_/a");
  EXPECT_EQ(expand_folder("${A}b", env), "/ab");
  EXPECT_EQ(expand_folder("$NONE/x", env), "");
  EXPECT_EQ(expand_folder("${NONE:-~/.cache}/x", env), "/h/.cache/x");
  EXPECT_EQ(expand_folder("${E:-/tmp}/x", env), "/tmp/x");
  EXPECT_EQ(expand_folder("${A:-/tmp}/x", env), "/a/x");
  EXPECT_EQ(expand_folder("${A", env), "");
  EXPECT_EQ(expand_folder("", env), "");
  EXPECT_NE(expand_folder("/tmp/i_$USER", {}), "");
}

TEST(Tree, BoundsAndHostileFolders) {
  const TempDir dir;
  EXPECT_TRUE(count_tree(dir.path() / "none", {}).complete);
  write(dir.path() / "a/1");
  fs::create_directory_symlink("..", dir.path() / "a/up");
  fs::create_directory_symlink(dir.path(), dir.path() / "a/root");
  TreeCount count = count_tree(dir.path(), {});
  EXPECT_EQ(count.entries, 4u);
  EXPECT_EQ(count.files, 1u);
  EXPECT_TRUE(count.complete);
  for (int i = 0; i < 50; ++i) write(dir.path() / "b" / std::to_string(i));
  count = count_tree(dir.path(), {}, 20);
  EXPECT_FALSE(count.complete);
  EXPECT_EQ(count.entries, 20u);
  EXPECT_FALSE(count_tree(dir.path(), {}, 1000, 0).complete);
  fs::path deep = dir.path() / "deep";
  for (int i = 0; i < 80; ++i) deep /= "d";
  fs::create_directories(deep);
  EXPECT_FALSE(count_tree(dir.path() / "deep", {}).complete);
  // A root that is a link is followed.
  fs::create_directory_symlink(dir.path() / "a", dir.path() / "to_a");
  EXPECT_EQ(count_tree(dir.path() / "to_a", {}).files, 1u);
}

TEST(Tree, Ignored) {
  EXPECT_TRUE(ignored({}, "a/k.lock"));
  EXPECT_TRUE(ignored({}, "tmp.pid_12_ab/k.cubin"));
  EXPECT_TRUE(ignored({}, "a/tmp3f_k2ab9"));
  EXPECT_TRUE(ignored({}, "k.tmp.12"));
  EXPECT_FALSE(ignored({}, "a/k.cubin"));
  EXPECT_FALSE(ignored({}, "tmpl/kernel"));
  EXPECT_FALSE(ignored({}, "a/tmp3f_k2abX9"));
  EXPECT_TRUE(ignored({"*.log"}, "a/b.log"));
  EXPECT_TRUE(ignored({"a/*"}, "a/b/c"));
  EXPECT_TRUE(ignored({"index"}, "a/index"));
  EXPECT_FALSE(ignored({"index"}, "a/index.x"));
  EXPECT_TRUE(ignored({"**/*.log"}, "top.log"));
  EXPECT_TRUE(ignored({"**/gpu_*"}, "a/gpu_x"));
  EXPECT_TRUE(ignored({"assets/**"}, "assets/a/b"));
  EXPECT_FALSE(ignored({"assets/**"}, "assets.py"));
}

TEST(PageCacheState, EvictedReadAndWhatCannotBe) {
  // Not in /dev/shm: its pages are the file.
  const TempDir dir;
  const std::string megabyte(1 << 20, 'x');
  write(dir.path() / "model/weights", megabyte);
  write(dir.path() / "blob", megabyte);
  fs::create_symlink("../blob", dir.path() / "model/linked");
  const std::vector<fs::path> model = {dir.path() / "model"};
  read_into_page_cache(model);
  PageCache seen = look_at_page_cache(model);
  EXPECT_EQ(seen.files, 2u) << "links of a model folder count";
  EXPECT_EQ(seen.bytes, 2u << 20);
  EXPECT_EQ(seen.unknown, 0u);
  EXPECT_EQ(seen.share(), 1);
  StoresSpec spec;
  spec.run_dir = dir.path() / "run";
  spec.model = model;
  spec.asked = {{"page_cache", "warm"}};
  EXPECT_TRUE(prepare_stores(spec).stores.at(0).reached);
  spec.asked = {{"page_cache", "cold"}};
  // Freshly written pages may be dirty, or the folder may lie in memory: then it must be said.
  const PreparedStore cold = prepare_stores(spec).stores.at(0);
  seen = look_at_page_cache(model);
  EXPECT_EQ(cold.reached, seen.share() <= 0.01);
  EXPECT_EQ(cold.note.empty(), cold.reached);
  spec.model = {"/nowhere"};
  const PreparedStore none = prepare_stores(spec).stores.at(0);
  EXPECT_FALSE(none.reached);
  EXPECT_EQ(none.found, "unknown");
}

}  // namespace
}  // namespace warmgate::target
