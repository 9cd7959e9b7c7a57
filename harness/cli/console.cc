#include "harness/cli/console.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "harness/trace/secrets.h"

namespace warmgate::cli {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// The locale's character set, by the variables' order of precedence.
reports::Charset charset() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    std::string value = environment(name);
    if (value.empty()) continue;
    std::transform(value.begin(), value.end(), value.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const bool utf8 =
        value.find("utf-8") != std::string::npos || value.find("utf8") != std::string::npos;
    return utf8 ? reports::Charset::kUtf8 : reports::Charset::kAscii;
  }
  return reports::Charset::kAscii;
}

StreamFacts facts_of(int fd) {
  StreamFacts facts;
  facts.terminal = ::isatty(fd) == 1;
  winsize size{};
  if (facts.terminal && ::ioctl(fd, TIOCGWINSZ, &size) == 0) facts.columns = size.ws_col;
  return facts;
}

// 0, or the error that ended the writing.
int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) {  // somebody made our terminal non-blocking
        ::usleep(1000);
        continue;
      }
      return errno;
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

}  // namespace

reports::Style style_for(const StreamFacts& facts, ColourChoice choice) {
  reports::Style style;
  style.charset = charset();
  style.colour = choice == ColourChoice::kAlways ||
                 (choice == ColourChoice::kAuto && facts.terminal &&
                  environment("NO_COLOR").empty() && environment("TERM") != "dumb");
  int columns = facts.columns;
  // Only on a terminal: a log should not depend on who ran it.
  if (const std::string wish = environment("COLUMNS"); facts.terminal && !wish.empty()) {
    const int value = std::atoi(wish.c_str());
    if (value > 0) columns = value;
  }
  style.width = columns > 0 ? static_cast<std::size_t>(columns) : 100;
  return style;
}

Console::Console(ColourChoice choice)
    : out_style_(style_for(facts_of(STDOUT_FILENO), choice)),
      err_style_(style_for(facts_of(STDERR_FILENO), choice)),
      err_terminal_(::isatty(STDERR_FILENO) == 1) {}

void Console::out(std::string_view text) {
  if (out_gone_) return;
  const int error = write_all(STDOUT_FILENO, text);
  if (error == 0) return;
  out_gone_ = true;
  // The reader of the pipe has seen enough; that is no fault of the run.
  if (error != EPIPE) out_error_ = std::string("cannot write to stdout: ") + std::strerror(error);
}

void Console::know(const std::vector<std::string>& secrets) {
  std::vector<std::string> all = trace::spellings(secrets);
  all.insert(all.end(), secrets_.begin(), secrets_.end());
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  secrets_ = std::move(all);
}

void Console::err(std::string_view text) {
  (void)write_all(STDERR_FILENO, trace::mask_secrets(text, secrets_));  // nobody is left to be told
}

void Console::complain(std::string_view text) {
  err("warmgate: " + reports::printable(text, err_style_.charset) + "\n");
}

void prepare_standard_streams() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) == -1 && errno == EBADF)
      (void)!::open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY);
  }
  std::signal(SIGPIPE, SIG_IGN);
}

}  // namespace warmgate::cli
