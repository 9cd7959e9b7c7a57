// The arrows of the house: which folder may include which. Breaking one fails here, with the file,
// the line and what would be allowed.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

// A room is the longest of these prefixes that a path starts with.
const std::vector<std::string> kRooms = {"harness/trace/wire",
                                         "harness/trace/sha256",
                                         "harness/trace/glob",
                                         "harness/trace",
                                         "harness/scenario/resolved",
                                         "harness/scenario/seams",
                                         "harness/scenario",
                                         "harness/engine",
                                         "harness/contract",
                                         "harness/verdict",
                                         "harness/target",
                                         "harness/run",
                                         "harness/plan",
                                         "harness/search",
                                         "harness/explain",
                                         "harness/history",
                                         "harness/probe",
                                         "harness/cli",
                                         "kernels",
                                         "reports",
                                         "fixtures",
                                         "ci"};

const std::set<std::string> kWire = {"harness/trace/wire", "harness/trace/sha256",
                                     "harness/trace/glob"};
const std::set<std::string> kResolved = {"harness/scenario/resolved", "harness/scenario/seams"};

std::set<std::string> plus(std::set<std::string> base, const std::set<std::string>& more) {
  base.insert(more.begin(), more.end());
  return base;
}

// What each room may include besides itself. Written so that each line adds to the one it builds
// on.
std::map<std::string, std::set<std::string>> arrows() {
  std::map<std::string, std::set<std::string>> may;
  may["harness/trace/wire"] = may["harness/trace/sha256"] = may["harness/trace/glob"] = {};
  may["harness/trace"] = kWire;
  may["harness/scenario/resolved"] = plus(kWire, {"harness/scenario/seams"});
  may["harness/scenario/seams"] = {};
  may["harness/scenario"] = plus(plus(kWire, kResolved), {"harness/trace"});
  may["kernels"] = plus(kWire, kResolved);
  may["harness/engine"] = plus(plus(kWire, kResolved), {"kernels"});
  may["harness/contract"] = plus(may["harness/scenario"], {"harness/scenario"});
  may["harness/verdict"] = plus(may["harness/contract"], {"harness/contract"});
  may["harness/history"] = plus(may["harness/verdict"], {"harness/verdict"});
  may["harness/explain"] = plus(may["harness/scenario"], {"harness/scenario"});
  may["harness/target"] = plus(may["harness/verdict"], {"harness/verdict", "harness/explain"});
  // run compiles keys for the architectures that no engine compiled them for, hence kernels.
  may["harness/run"] =
      plus(may["harness/target"], {"harness/target", "harness/history", "kernels"});
  may["harness/search"] = plus(may["harness/run"], {"harness/run"});
  may["harness/plan"] = plus(may["harness/run"], {"harness/run"});
  may["reports"] = plus(may["harness/verdict"], {"harness/verdict"});
  may["harness/cli"] = plus(may["harness/run"], {"harness/run", "harness/search", "harness/plan",
                                                 "harness/history", "reports"});
  may["harness/probe"] = kWire;
  may["fixtures"] = kWire;
  may["ci"] = plus(may["harness/cli"], {"harness/engine"});
  return may;
}

std::string room_of(const std::string& path) {
  std::string best;
  for (const std::string& room : kRooms) {
    const bool inside =
        path.rfind(room, 0) == 0 && (path.size() == room.size() || path[room.size()] == '/' ||
                                     path[room.size()] == '.' || path[room.size()] == '_');
    if (inside && room.size() > best.size()) best = room;
  }
  return best;
}

struct Include {
  std::string file;
  int line;
  std::string target;  // as written
};

std::vector<Include> includes_of(const fs::path& root, const fs::path& file) {
  static const std::regex pattern(R"re(^\s*#\s*include\s*["<]([^">]+)[">])re");
  std::vector<Include> out;
  std::ifstream in(file);
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    std::smatch match;
    if (std::regex_search(line, match, pattern)) {
      out.push_back({fs::relative(file, root).string(), number, match[1]});
    }
  }
  return out;
}

std::vector<fs::path> sources(const fs::path& root) {
  std::vector<fs::path> out;
  for (const char* top : {"harness", "kernels", "reports", "fixtures", "ci"}) {
    if (!fs::exists(root / top)) continue;
    fs::recursive_directory_iterator at(root / top), end;
    for (; at != end; ++at) {
      const fs::directory_entry& entry = *at;
      if (entry.path().filename() == "node_modules") {  // what ci/llama installs is not ours
        at.disable_recursion_pending();
        continue;
      }
      const std::string ext = entry.path().extension();
      if (entry.is_regular_file() &&
          (ext == ".cc" || ext == ".h" || ext == ".cu" || ext == ".cuh")) {
        out.push_back(entry.path());
      }
    }
  }
  return out;
}

// "" if the include is allowed, else what is wrong with it.
std::string broken_arrow(const Include& include) {
  static const auto may = arrows();
  const std::string to = room_of(include.target);
  if (to.empty()) return "";  // outside the house
  std::string from = room_of(include.file);
  // A test of the writing half may read back what was written.
  const bool test = include.file.ends_with("_test.cc") || include.file.ends_with("test_support.h");
  if (test && kWire.count(from) > 0) from = "harness/trace";
  if (test && from == "harness/probe" && to == "harness/trace") return "";
  // Tests of the house (harness/*_test.cc) and tests that run the whole product may look anywhere.
  if (from.empty()) return "";
  if (from == to || may.at(from).count(to) > 0) return "";
  std::string allowed;
  for (const std::string& room : may.at(from)) allowed += (allowed.empty() ? "" : ", ") + room;
  return include.file + ":" + std::to_string(include.line) + ": " + from + " must not include " +
         include.target + "; it may include " + (allowed.empty() ? "nothing of ours" : allowed);
}

fs::path source_root() {
  const char* root = std::getenv("WARMGATE_SOURCE_DIR");
  return root ? fs::path(root) : fs::path(".");
}

TEST(House, IncludesFollowTheArrows) {
  const auto files = sources(source_root());
  ASSERT_GT(files.size(), 50u) << "the source tree was not found at " << source_root();
  for (const fs::path& file : files) {
    for (const Include& include : includes_of(source_root(), file)) {
      EXPECT_EQ(broken_arrow(include), "");
    }
  }
}

TEST(House, TheRulesCanBreak) {
  EXPECT_NE(broken_arrow({"harness/engine/x.cc", 1, "harness/trace/event.h"}), "");
  EXPECT_NE(broken_arrow({"harness/engine/x.cc", 1, "harness/scenario/scenario.h"}), "");
  EXPECT_NE(broken_arrow({"harness/trace/event.cc", 1, "harness/scenario/resolved.h"}), "");
  EXPECT_NE(broken_arrow({"kernels/jit/key.cc", 1, "harness/engine/context.h"}), "");
  EXPECT_NE(broken_arrow({"reports/json.cc", 1, "harness/run/run.h"}), "");
  EXPECT_NE(broken_arrow({"harness/contract/protocol.cc", 1, "harness/verdict/verdict.h"}), "");
  EXPECT_EQ(broken_arrow({"harness/engine/x.cc", 1, "harness/trace/wire.h"}), "");
  EXPECT_EQ(broken_arrow({"harness/cli/gate.cc", 1, "reports/terminal.h"}), "");
  EXPECT_EQ(broken_arrow({"harness/trace/event.cc", 1, "nlohmann/json.hpp"}), "");
}

TEST(House, HeavyHeadersStayWhereTheyAre) {
  // Seconds of compile time each; the file that needs one is named here.
  const std::map<std::string, std::string> homes = {{"CLI/", "harness/cli/parse"},
                                                    {"boost/beast", "harness/target/"},
                                                    {"boost/process", "harness/target/"},
                                                    {"boost/asio", "harness/target/"}};
  for (const fs::path& file : sources(source_root())) {
    for (const Include& include : includes_of(source_root(), file)) {
      for (const auto& [header, home] : homes) {
        if (include.target.rfind(header, 0) != 0) continue;
        EXPECT_EQ(include.file.rfind(home, 0), 0u) << include.file << ":" << include.line << ": <"
                                                   << include.target << "> belongs in " << home;
      }
    }
  }
}

TEST(House, FilesStaySmall) {
  for (const fs::path& file : sources(source_root())) {
    std::ifstream in(file);
    int lines = 0;
    for (std::string line; std::getline(in, line);) ++lines;
    EXPECT_LE(lines, 500) << file << ": one idea a file; split it";
  }
}

TEST(House, HeadersNameTheirGuard) {
  for (const fs::path& file : sources(source_root())) {
    if (file.extension() != ".h") continue;
    std::ifstream in(file);
    const std::string text((std::istreambuf_iterator<char>(in)), {});
    EXPECT_NE(text.find("#pragma once"), std::string::npos) << file;
  }
}

}  // namespace
