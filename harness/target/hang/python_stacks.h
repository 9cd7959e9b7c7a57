// Stacks of Python programs that hang: by the signal that the plugin in them waits for
// (faulthandler), or by py-spy where it is installed.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace warmgate::target {

struct Frame {
  std::string function, file;
  long line = 0;
};

struct PythonThread {
  std::string name;           // as the tool names it: "Thread 0x7f3c (most recent call first)"
  bool current = false;       // the one that held the interpreter
  std::vector<Frame> frames;  // innermost first, at most 48
};

/// What faulthandler wrote, or py-spy dump printed. Lines that are neither are passed over; at most
/// 64 threads.
std::vector<PythonThread> parse_faulthandler(std::string_view text);
std::vector<PythonThread> parse_py_spy(std::string_view text);

/// True for a thread that waits in Python's own library: a lock, a queue, a join, a child, a poll.
bool only_waits(const PythonThread& thread);
/// The thread that says most: one that does not only wait, the current one before others; else the
/// first. Null if there is none.
const PythonThread* most_telling(const std::vector<PythonThread>& threads);

/// `py-spy dump --nonblocking --pid PID`, 5 s at most; "" and `why` where it cannot be had.
std::string py_spy(pid_t pid, std::string& why);

}  // namespace warmgate::target
