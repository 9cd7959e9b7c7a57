// Tracebacks of Python, put together from lines of several processes that were mixed on the way.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace warmgate::explain::internal {

struct Frame {
  std::string file, function, code;  // whole path; code = the source line, "" if not printed
};

/// An exception as its last line says it.
struct Exception {
  std::string_view type, message;
};
/// `torch.OutOfMemoryError: CUDA out of memory. …` or `KeyError`; false if the line is none.
bool read_exception(std::string_view line, Exception& out);

class Tracebacks {
 public:
  enum class Part {
    kNone,   // not part of a traceback
    kBegin,  // `Traceback (most recent call last):`, perhaps behind a message
    kFrame,  // a frame, its source line or its marks
    kEnd,    // the exception
    kChain,  // what follows was raised because of the one before
  };
  struct Result {
    Part part = Part::kNone;
    bool chained = false;  // kBegin, kEnd: an earlier exception of this key was its cause
    const std::vector<Frame>* frames = nullptr;  // kEnd, and kFrame of a newest-first stack
    bool newest_first = false;
    Exception exception;  // kEnd
  };

  /// `key` tells apart what cannot belong together: process, and the place that logs.
  Result read(std::string_view message, std::uint64_t key, std::int64_t line);
  /// No traceback is open: the cheap way out for the reader's loop.
  bool idle() const { return open_.empty(); }

 private:
  struct Open {
    std::vector<Frame> frames;
    bool began = false;    // frames may come
    bool ended = false;    // an exception was seen; a chain may follow
    bool chained = false;  // the next one is a consequence
    bool newest_first = false;
    std::int64_t line = 0;
  };
  Open& open(std::uint64_t key, std::int64_t line);

  static constexpr std::size_t kMostOpen = 128;    // at once
  static constexpr std::size_t kMostFrames = 200;  // the innermost
  static constexpr std::int64_t kForget = 400;     // lines without a part
  std::map<std::uint64_t, Open> open_;
};

/// The innermost frame that is not of a library, and at most two around it.
struct Innermost {
  std::string function, file;                               // file without folders
  std::vector<std::pair<std::string, std::string>> frames;  // innermost first, ≤ 3
  std::vector<std::string> functions;                       // all, innermost first
};
Innermost innermost(const std::vector<Frame>& frames, bool newest_first,
                    const std::vector<std::string>& ignore_files);

}  // namespace warmgate::explain::internal
