#include "harness/target/evidence.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "harness/target/fd.h"
#include "harness/target/mask.h"

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

namespace {

void mask_strings(trace::json& value, const std::vector<std::string>& secrets) {
  if (value.is_string()) {
    const std::string& text = value.get_ref<const std::string&>();
    std::string masked = mask(text, secrets);
    if (masked != text) value = std::move(masked);
  } else if (value.is_structured()) {
    for (auto& item : value) mask_strings(item, secrets);
  }
}

}  // namespace

void mask_events(trace::Trace& trace, const std::vector<std::string>& secrets) {
  for (trace::Event& event : trace.events) {
    trace::json body = event.body.to_json();
    mask_strings(body, secrets);
    event.body = trace::Fields(body);
  }
  for (trace::BadLine& line : trace.bad_lines) {
    line.excerpt = mask(line.excerpt, secrets);
    line.why = mask(line.why, secrets);
  }
}

}  // namespace warmgate::target
