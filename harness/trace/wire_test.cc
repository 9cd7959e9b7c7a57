#include "harness/trace/wire.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>

#include "harness/trace/event.h"
#include "harness/trace/vocabulary.h"

namespace warmgate::trace {
namespace {

// What a writer sent through a real pipe, parsed.
struct Pipe {
  Pipe() {
    EXPECT_EQ(::pipe2(fds, O_CLOEXEC), 0);
    EXPECT_GT(::fcntl(fds[1], F_SETPIPE_SZ, 1 << 20), 0);
  }
  ~Pipe() {
    ::close(fds[0]);
    if (fds[1] >= 0) ::close(fds[1]);
  }
  std::string drain() {
    ::close(fds[1]);
    fds[1] = -1;
    std::string text;
    char buffer[65536];
    for (ssize_t n; (n = ::read(fds[0], buffer, sizeof buffer)) > 0;)
      text.append(buffer, static_cast<std::size_t>(n));
    return text;
  }
  int fds[2] = {-1, -1};
};

Trace read(const std::string& text) {
  Trace trace;
  LineReader reader("test", trace);
  reader.feed(text);
  reader.finish();
  return trace;
}

TEST(Wire, EveryFieldTypeSurvivesTheRoundTrip) {
  Pipe pipe;
  EventWriter writer;
  writer.open_descriptor(pipe.fds[1]);
  writer.hello("test", 3, 4, {"alloc"});
  writer.send(Line("x")
                  .str("s", "a\"b\\c\n\t\x01")
                  .num("i", INT64_MIN)
                  .real("d", 0.1)
                  .real("nan", std::nan(""))
                  .flag("b", true)
                  .null("n")
                  .strings("ss", {"a", "b"})
                  .numbers("is", {1, -2})
                  .raw("r", "{\"k\":[1]}"));
  writer.bye();
  const Trace trace = read(pipe.drain());
  ASSERT_EQ(trace.bad_lines.size(), 0u);
  ASSERT_EQ(trace.events.size(), 3u);
  const Event& e = trace.events[1];
  EXPECT_EQ(e.rank, 3);
  EXPECT_EQ(e.str("s"), "a\"b\\c\n\t\x01");
  EXPECT_EQ(e.num("i"), INT64_MIN);
  EXPECT_EQ(e.real("d"), 0.1);
  EXPECT_TRUE(e.body.value("nan").is_null() && e.body.contains("nan"));
  EXPECT_TRUE(e.flag("b"));
  EXPECT_EQ(e.strings("ss"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(e.body.value("r").at("k").at(0), 1);
  EXPECT_GT(e.t_ns, 0);
  EXPECT_EQ(trace.emits(), std::set<std::string>{"alloc"});
}

TEST(Wire, AnyBytesBecomeLegalJson) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(random() % 40, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    std::string out;
    append_json_string(out, bytes);
    EXPECT_FALSE(json::parse(out, nullptr, false).is_discarded()) << out;
  }
  // Overlong, surrogate, beyond the last code point, truncated.
  for (const char* bad : {"\xC0\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE2\x82"}) {
    std::string out;
    append_json_string(out, bad);
    EXPECT_NE(out.find("\xEF\xBF\xBD"), std::string::npos);
    EXPECT_FALSE(json::parse(out, nullptr, false).is_discarded());
  }
  std::string good;
  append_json_string(good, "±→𝛼");
  EXPECT_EQ(json::parse(good).get<std::string>(), "±→𝛼");
}

TEST(Wire, TooLongAndTooManyAreFaults) {
  Pipe pipe;
  EventWriter writer;
  writer.open_descriptor(pipe.fds[1]);
  writer.send(Line("x").str("s", std::string(kMaxLineBytes, 'a')));
  EXPECT_EQ(read(pipe.drain()).events.at(0).str("type"), "line_too_long");

  const auto path =
      std::filesystem::temp_directory_path() / ("wire_test." + std::to_string(::getpid()));
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
  EventWriter many;
  many.open_descriptor(fd);
  for (std::size_t i = 0; i < kMaxLinesPerRun + 500; ++i) many.send(Line("x"));
  many.send(Line("fault").str("type", "t").str("message", "still told"));
  many.bye();
  ::close(fd);
  std::ifstream in(path);
  const Trace trace = read(std::string((std::istreambuf_iterator<char>(in)), {}));
  std::filesystem::remove(path);
  EXPECT_EQ(trace.events.size(), kMaxLinesPerRun + 3);
  EXPECT_EQ(trace.of("fault").size(), 2u);
  EXPECT_EQ(trace.events.back().ev, "bye");
}

TEST(Wire, TheDescriptorIsUsedOnlyIfItIsThatPipe) {
  Pipe pipe;
  struct stat st {};
  ASSERT_EQ(::fstat(pipe.fds[1], &st), 0);
  const auto spec = [&](unsigned long long inode) {
    return std::to_string(pipe.fds[1]) + ":" + std::to_string(inode);
  };
  ::unsetenv("WARMGATE_EVENTS_DIR");
  for (const std::string& wrong :
       {spec(st.st_ino + 1), std::string("junk"), std::string("-1:5"), std::string("")}) {
    ::setenv("WARMGATE_EVENTS_FD", wrong.c_str(), 1);
    EventWriter writer;
    EXPECT_FALSE(writer.open_from_environment()) << wrong;
    writer.send(Line("x"));  // goes nowhere, harms nobody
  }
  ::setenv("WARMGATE_EVENTS_FD", spec(st.st_ino).c_str(), 1);
  EventWriter writer;
  EXPECT_TRUE(writer.open_from_environment());
  EXPECT_NE(::fcntl(pipe.fds[1], F_GETFD) & FD_CLOEXEC, 0);
  ::unsetenv("WARMGATE_EVENTS_FD");
}

TEST(Wire, AFileInTheDirectoryIsTheSecondChannel) {
  const auto dir =
      std::filesystem::temp_directory_path() / ("wire_dir." + std::to_string(::getpid()));
  std::filesystem::create_directory(dir);
  ::setenv("WARMGATE_EVENTS_DIR", dir.c_str(), 1);
  {
    EventWriter writer;
    ASSERT_TRUE(writer.open_from_environment());
    writer.hello("test", std::nullopt, std::nullopt, {});
  }
  ::unsetenv("WARMGATE_EVENTS_DIR");
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(dir)) {
    ++files;
    std::ifstream in(entry.path());
    const Trace trace = read(std::string((std::istreambuf_iterator<char>(in)), {}));
    ASSERT_EQ(trace.events.size(), 1u);
    EXPECT_EQ(trace.events[0].rank, std::nullopt);
  }
  EXPECT_EQ(files, 1);
  std::filesystem::remove_all(dir);
}

TEST(Vocabulary, FiguresAndKindsAreUnique) {
  std::set<std::string_view> names;
  for (const FigureRule& f : figures()) EXPECT_TRUE(names.insert(f.name).second) << f.name;
  names.clear();
  for (const EventKind& k : event_kinds()) EXPECT_TRUE(names.insert(k.ev).second) << k.ev;
  EXPECT_EQ(find_figure("no_such"), nullptr);
  EXPECT_EQ(find_kind("no_such"), nullptr);
  EXPECT_EQ(phases().size(), 9u);
}

}  // namespace
}  // namespace warmgate::trace
