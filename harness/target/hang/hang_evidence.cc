#include "harness/target/hang/hang_evidence.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <map>
#include <set>
#include <thread>

#include "harness/target/hang/cuda_core.h"
#include "harness/target/hang/last_calls.h"
#include "harness/target/hang/python_stacks.h"
#include "harness/target/hang/regular_file.h"
#include "harness/target/hang/threads.h"
#include "harness/target/server/compilers.h"
#include "harness/target/sweep.h"
#include "harness/target/target.h"
#include "harness/trace/wire.h"
#include "harness/trace/wire_calls.h"

namespace warmgate::target {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using trace::json;

constexpr std::size_t kMostProcesses = 64, kMostStacks = 400;
constexpr std::chrono::milliseconds kLook{20};

// What is gathered of one process.
struct Gathered {
  HangProcess process;
  std::vector<ThreadState> threads;
  std::optional<ProcessCalls> calls;
  std::vector<PythonThread> python;
  std::vector<RunningKernel> kernels;
  json how = json::array(), missing = json::array();
  fs::path stacks, pipe, core;  // asked for; "" where there is nothing to ask
  std::uintmax_t stacks_before = 0;
  std::string python_how;
};

std::uintmax_t size_of(const fs::path& file) {
  std::error_code failed;
  const std::uintmax_t size = fs::file_size(file, failed);
  return failed ? 0 : size;
}

bool is_python(std::string_view command) {
  const std::string_view program = command.substr(0, command.find(' '));
  return program.substr(program.rfind('/') + 1).substr(0, 6) == "python";
}

std::string frame_text(const Frame& frame) {
  return fmt::format("{} ({}:{})", frame.function, frame.file, frame.line);
}

json frames_of(const std::vector<Frame>& frames) {
  json out = json::array();
  for (const Frame& frame : frames) out.push_back(frame_text(frame));
  return out;
}

void ask_python(Gathered& of, const fs::path& events, const trace::Trace& trace) {
  for (const trace::Event* told : trace.of("probe")) {
    const int number = static_cast<int>(told->num("stacks_signal"));
    const fs::path file = told->str("stacks_file");
    if (told->num("pid") != of.process.pid || number < SIGRTMIN || number > SIGRTMAX ||
        file.empty() || file != file.filename())
      continue;
    // What it told may be over: an exec drops its handler, a daemon closes what it finds, and the
    // signal would end it, or write into a file of its own.
    if (!catches(of.process.pid, number) ||
        !is_open_as(of.process.pid, told->num("stacks_fd", -1), events / file)) {
      of.missing.push_back("faulthandler: the process listens no more");
      continue;
    }
    of.stacks = events / file;
    of.stacks_before = size_of(of.stacks);
    if (::kill(of.process.pid, number) != 0) of.stacks.clear();
  }
}

void ask_cuda(Gathered& of, const fs::path& events) {
  const std::string number = std::to_string(of.process.pid);
  const fs::path pipe = events / (kCorePipe + number);
  std::error_code failed;
  if (!fs::is_fifo(pipe, failed)) return;
  if (ask_for_core(pipe)) {
    of.core = events / (kCoreFile + number);
  } else {
    of.missing.push_back("core: the driver does not read its pipe (another tool uses CUPTI?)");
  }
}

// faulthandler writes a file in one go; two looks of the same size are the end of it.
void take_python(Gathered& of) {
  std::uintmax_t last = of.stacks_before;
  for (const auto end = Clock::now() + std::chrono::seconds(1); Clock::now() < end;) {
    const std::uintmax_t now = size_of(of.stacks);
    if (now > of.stacks_before && now == last) break;
    last = now;
    std::this_thread::sleep_for(kLook);
  }
  of.python = parse_faulthandler(read_regular(of.stacks, 1 << 20, of.stacks_before));
  of.python_how = "faulthandler";
  if (of.python.empty()) of.missing.push_back("faulthandler: no stack within a second");
}

void take_core(Gathered& of, Clock::time_point until) {
  while (true) {
    if (const auto bytes = whole_core(of.core)) {
      const auto kernels = kernels_of_core(*bytes);
      if (kernels) of.kernels = *kernels;
      of.how.push_back("core");
      if (!kernels) of.missing.push_back("core: a dump without a table of kernels");
      return;
    }
    if (Clock::now() >= until) break;
    std::this_thread::sleep_for(kLook);
  }
  of.missing.push_back("core: no dump in time");
}

// The call of the driver that somebody has been in for longest.
const LastCall* longest(const std::optional<ProcessCalls>& calls) {
  const LastCall* out = nullptr;
  if (!calls) return out;
  for (const LastCall& each : calls->threads) {
    if (each.inside_s && (out == nullptr || *each.inside_s > *out->inside_s)) out = &each;
  }
  return out;
}

trace::Event summary(const Gathered& of) {
  trace::Fields body = {{"pid", of.process.pid},
                        {"process", of.process.command.substr(0, 200)},
                        {"thread_count", of.threads.size()},
                        {"how", of.how}};
  if (!of.threads.empty()) {
    body.set("state", std::string(1, of.threads.front().state));
    if (!of.threads.front().wait.empty()) body.set("waits", of.threads.front().wait);
  }
  if (const LastCall* call = longest(of.calls)) {
    body.set("call", call->call);
    body.set("inside_s", *call->inside_s);
  }
  if (!of.kernels.empty()) {
    json names = json::array();
    for (const RunningKernel& kernel : of.kernels)
      names.push_back(kernel.name.empty() ? "(no symbol)" : kernel.name);
    body.set("kernels", names);
  }
  if (const PythonThread* thread = most_telling(of.python)) {
    body.set("frames", frames_of(thread->frames));
    body.set("idle", only_waits(*thread));
  }
  if (!of.missing.empty()) body.set("missing", of.missing);
  return trace::harness_event("hang", std::move(body), of.process.rank);
}

void stacks(const Gathered& of, std::vector<trace::Event>& out) {
  const auto add = [&](long tid, const std::string& thread, const char* how, json frames) {
    if (out.size() >= kMostStacks) return;
    out.push_back(trace::harness_event("stack",
                                       {{"pid", of.process.pid},
                                        {"tid", tid},
                                        {"thread", thread},
                                        {"how", how},
                                        {"frames", std::move(frames)}},
                                       of.process.rank));
  };
  for (const PythonThread& each : of.python)
    add(0, each.name, of.python_how.c_str(), frames_of(each.frames));
  for (const ThreadState& each : of.threads) {
    json frames = json::array();
    if (!each.wait.empty()) frames.push_back(each.wait);
    for (const std::string& line : each.kernel_stack) frames.push_back(line);
    add(each.tid, fmt::format("{} [{}], {:.2f} s CPU", each.name, each.state, each.cpu_s), "proc",
        std::move(frames));
  }
  if (!of.calls) return;
  for (const LastCall& each : of.calls->threads) {
    add(each.tid, "", "probe",
        {each.inside_s ? fmt::format("{} since {:.1f} s", each.call, *each.inside_s)
                       : fmt::format("back from {}", each.call)});
  }
}

void add_tree(pid_t pid, int rank, std::set<pid_t>& seen, std::vector<HangProcess>& out) {
  ProcessInfo info;
  if (out.size() >= kMostProcesses || !seen.insert(pid).second || !read_process(pid, info, true) ||
      info.state == 'Z')
    return;
  const auto named = named_rank(info.command);
  out.push_back({pid, info.command,
                 named       ? named
                 : rank >= 0 ? std::optional(rank)
                             : std::nullopt});
  for (const pid_t child : children_of(pid)) add_tree(child, rank, seen, out);
}

}  // namespace

std::vector<HangProcess> with_descendants(const std::vector<std::pair<pid_t, int>>& workers) {
  std::vector<HangProcess> out;
  std::set<pid_t> seen;
  for (const auto& [pid, rank] : workers) add_tree(pid, rank, seen, out);
  return out;
}

std::vector<trace::Event> hang_evidence(const std::vector<HangProcess>& processes,
                                        const fs::path& events, const trace::Trace& trace,
                                        std::chrono::milliseconds patience) {
  std::vector<Gathered> all;
  for (const HangProcess& process : processes) {
    Gathered of;
    of.process = process;
    of.threads = threads_of(process.pid);
    if (!of.threads.empty()) of.how.push_back("proc");
    of.calls = read_last_calls(events / (trace::kCallTableFile + std::to_string(process.pid)),
                               trace::now_ns());
    if (of.calls) of.how.push_back("probe");
    all.push_back(std::move(of));
  }
  const auto until = Clock::now() + patience;
  for (Gathered& of : all) {
    ask_python(of, events, trace);
    ask_cuda(of, events);
  }
  std::vector<trace::Event> out, threads;
  for (Gathered& of : all) {
    if (!of.stacks.empty()) {
      take_python(of);
    } else if (is_python(of.process.command) && Clock::now() < until) {
      std::string why;
      of.python = parse_py_spy(py_spy(of.process.pid, why));
      of.python_how = "py-spy";
      if (!why.empty()) of.missing.push_back(why + "; --probe python shows the stack");
    }
    if (!of.python.empty()) of.how.push_back(of.python_how);
    if (!of.core.empty()) take_core(of, until);
    out.push_back(summary(of));
    stacks(of, threads);
  }
  out.insert(out.end(), std::make_move_iterator(threads.begin()),
             std::make_move_iterator(threads.end()));
  return out;
}

}  // namespace warmgate::target
