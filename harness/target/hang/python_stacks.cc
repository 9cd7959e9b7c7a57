#include "harness/target/hang/python_stacks.h"

#include <chrono>
#include <cstdlib>

#include "harness/contract/subprocess.h"

namespace warmgate::target {
namespace {

constexpr std::size_t kMostThreads = 64, kMostFrames = 48, kMostText = 512;

template <typename F>
void each_line(std::string_view text, F&& take) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    take(text.substr(0, end));
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

std::string short_of(std::string_view text) { return std::string(text.substr(0, kMostText)); }

bool begins(std::string_view text, std::string_view with) {
  return text.substr(0, with.size()) == with;
}

// `  File "engine.py", line 12 in step`
bool faulthandler_frame(std::string_view line, Frame& out) {
  const std::size_t file = line.find("File \""), end = line.find("\", line ");
  if (file == std::string_view::npos || end == std::string_view::npos || end < file + 6)
    return false;
  const std::size_t in = line.find(" in ", end);
  if (in == std::string_view::npos) return false;
  out.file = short_of(line.substr(file + 6, end - file - 6));
  out.line = std::strtol(std::string(line.substr(end + 8, in - end - 8)).c_str(), nullptr, 10);
  out.function = short_of(line.substr(in + 4));
  return true;
}

// `    step (engine.py:12)`
bool py_spy_frame(std::string_view line, Frame& out) {
  const std::size_t open = line.rfind(" ("), colon = line.rfind(':');
  if (!begins(line, "    ") || open == std::string_view::npos || colon == std::string_view::npos ||
      colon < open || line.back() != ')')
    return false;
  out.function = short_of(line.substr(4, open - 4));
  out.file = short_of(line.substr(open + 2, colon - open - 2));
  out.line = std::strtol(std::string(line.substr(colon + 1)).c_str(), nullptr, 10);
  return true;
}

void add(std::vector<PythonThread>& all, Frame frame) {
  if (!all.empty() && all.back().frames.size() < kMostFrames)
    all.back().frames.push_back(std::move(frame));
}

}  // namespace

std::vector<PythonThread> parse_faulthandler(std::string_view text) {
  std::vector<PythonThread> out;
  bool room = true;
  each_line(text, [&](std::string_view line) {
    const bool current = begins(line, "Current thread ");
    if (current || begins(line, "Thread ") || begins(line, "Stack (most recent")) {
      room = out.size() < kMostThreads;
      if (room) out.push_back({short_of(line.substr(0, line.find(" (most"))), current, {}});
    } else if (Frame frame; room && faulthandler_frame(line, frame)) {
      add(out, std::move(frame));
    }
  });
  return out;
}

std::vector<PythonThread> parse_py_spy(std::string_view text) {
  std::vector<PythonThread> out;
  bool room = true;
  each_line(text, [&](std::string_view line) {
    if (begins(line, "Thread ")) {
      room = out.size() < kMostThreads;
      if (room) out.push_back({short_of(line), line.find("active") != line.npos, {}});
    } else if (Frame frame; room && !line.empty() && py_spy_frame(line, frame)) {
      add(out, std::move(frame));
    }
  });
  return out;
}

bool only_waits(const PythonThread& thread) {
  if (thread.frames.empty()) return true;
  const std::string& file = thread.frames.front().file;
  const std::string_view name = std::string_view(file).substr(file.rfind('/') + 1);
  for (const std::string_view waits :
       {"threading.py", "queue.py", "selectors.py", "popen_fork.py", "popen_spawn_posix.py",
        "connection.py", "subprocess.py", "socketserver.py", "base_events.py", "thread.py",
        "synchronize.py", "process.py", "queues.py"}) {
    if (name == waits) return true;
  }
  return false;
}

const PythonThread* most_telling(const std::vector<PythonThread>& threads) {
  const PythonThread* best = nullptr;
  for (const PythonThread& each : threads) {
    if (only_waits(each)) continue;
    if (best == nullptr || (each.current && !best->current)) best = &each;
  }
  if (best != nullptr || threads.empty()) return best;
  for (const PythonThread& each : threads) {
    if (each.current) return &each;
  }
  return &threads.front();
}

std::string py_spy(pid_t pid, std::string& why) {
  const contract::Finished done = contract::run_helper(
      {"py-spy", "dump", "--nonblocking", "--pid", std::to_string(pid)},
      [] { return std::string(); }, std::chrono::seconds(5), 1 << 20);
  if (!done.started) {
    why = "py-spy is not on PATH";
  } else if (done.timed_out) {
    why = "py-spy did not answer within 5 s";
  } else if (done.exit_code != 0) {
    why = "py-spy: " + done.err.substr(0, done.err.find('\n')).substr(0, 200);
  } else {
    return done.out;
  }
  return "";
}

}  // namespace warmgate::target
