#include "harness/target/evidence.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "harness/target/fd.h"
#include "harness/target/mask.h"
#include "harness/trace/ranks_of_pids.h"

namespace warmgate::target {

namespace fs = std::filesystem;

std::int64_t kernel_oom_kills() {
  const Fd fd(::open("/proc/vmstat", O_RDONLY | O_CLOEXEC));
  char text[16384];
  std::size_t size = 0;
  while (fd.valid() && size < sizeof text - 1) {
    const ssize_t n = ::read(fd.get(), text + size, sizeof text - 1 - size);
    if (n <= 0) break;
    size += static_cast<std::size_t>(n);
  }
  text[size] = '\0';
  const char* at = std::strstr(text, "\noom_kill ");
  return at == nullptr ? -1 : std::strtoll(at + 10, nullptr, 10);
}

bool says_out_of_memory(std::string_view text) {
  std::string folded(text);
  std::transform(folded.begin(), folded.end(), folded.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
  });
  for (const char* words : {"bad_alloc", "memoryerror", "out of memory", "outofmemory",
                            "cannot allocate memory", "failed to allocate", "std::bad_array_new"}) {
    if (folded.find(words) != std::string::npos) return true;
  }
  return false;
}

std::string oom_evidence(const verdict::WorkerEnd& end, const std::string& source,
                         const trace::Trace& trace, const std::vector<verdict::Output>& outputs,
                         bool kernel_killed) {
  if (end.killed_by_us || (end.exited && end.exit_code == 0)) return "";
  for (auto event = trace.events.rbegin(); event != trace.events.rend(); ++event) {
    if (event->ev != "fault" || (event->source != source && event->rank != end.rank)) continue;
    const std::string text = event->str("type") + ": " + event->str("message");
    if (says_out_of_memory(text)) return "fault " + text;
    break;  // its last words were about something else
  }
  for (const verdict::Output& output : outputs) {
    for (auto line = output.matched.rbegin(); line != output.matched.rend(); ++line) {
      if (says_out_of_memory(*line)) return output.stream + ": " + *line;
    }
  }
  if (end.signal == SIGKILL && kernel_killed) {
    return "SIGKILL from elsewhere while the kernel's memory killer struck (/proc/vmstat oom_kill)";
  }
  return "";
}

std::vector<std::string> files_below(const fs::path& folder, std::size_t limit) {
  std::vector<std::string> out;
  std::error_code failed;
  fs::recursive_directory_iterator it(folder, fs::directory_options::skip_permission_denied,
                                      failed);
  for (; !failed && it != fs::recursive_directory_iterator() && out.size() < limit;
       it.increment(failed)) {
    std::error_code ignored;
    if (it->symlink_status(ignored).type() == fs::file_type::directory) continue;
    out.push_back(it->path().lexically_relative(folder).string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

void mask_events(std::vector<trace::Event>& events, const std::vector<std::string>& secrets,
                 std::vector<std::string>* found,
                 const std::function<bool(const trace::Event&)>& which) {
  for (trace::Event& event : events) {
    if (which && !which(event)) continue;
    trace::json body = event.body.to_json();
    mask_json(body, secrets, found);
    event.body = trace::Fields(body);
  }
}

void mask_events(trace::Trace& trace, const std::vector<std::string>& secrets,
                 std::vector<std::string>* found) {
  mask_events(trace.events, secrets, found);
  for (trace::BadLine& line : trace.bad_lines) {
    line.excerpt = trace::mask_part(line.excerpt, 0, line.excerpt.size(), secrets, found);
    line.why = mask(line.why, secrets);
  }
}

void mask_found(TargetResult& result, std::vector<std::string> found) {
  found = trace::spellings(std::move(found));
  if (found.empty()) return;
  mask_events(result.trace, found);
  for (verdict::Output& output : result.outputs) {
    output.head = mask(output.head, found);
    output.tail = mask(output.tail, found);
    for (std::string& line : output.matched) line = mask(line, found);
  }
  result.infra_error = mask(result.infra_error, found);
  result.hang_phase = mask(result.hang_phase, found);
  result.secrets = std::move(found);
}

void mask_run(TargetResult& result, std::vector<trace::Event> of_harness,
              const std::vector<std::string>& secrets, bool seen, std::vector<std::string> found) {
  if (seen) {
    mask_events(result.trace, secrets, &found);
  } else {
    // Those that no worker sent went past no spotter.
    mask_events(result.trace.events, secrets, &found,
                [](const trace::Event& event) { return event.src != "channel"; });
  }
  mask_events(of_harness, secrets, &found);
  for (trace::Event& event : of_harness) result.trace.events.push_back(std::move(event));
  result.trace.sort_by_time();
  trace::name_ranks(result.trace);
  mask_found(result, std::move(found));
}

}  // namespace warmgate::target
