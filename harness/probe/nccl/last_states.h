// What each communicator did last, where it outlives the process: one record a communicator in a
// file that is mapped, so that a million operations cost no system call and no line, and a process
// that hangs or is killed has left the operation it was in.
#pragma once

#include <cstddef>
#include <string_view>

namespace warmgate::probe::nccl {

class LastStates {
 public:
  static constexpr std::size_t kCommunicators = 128;
  static constexpr std::size_t kRecordBytes = 640;

  /// Makes `<host>.<pid>.<time>.last` in `folder` and reserves all of it, so that no store can meet
  /// a full disk. False: there is none, and write() does nothing.
  bool open(const char* folder);
  /// Replaces what is written of communicator `index`. Each has two places that take turns: a
  /// process that dies in the middle of one leaves the other. `text` is one line of JSON without
  /// its newline; one that does not fit is left out.
  void write(std::size_t index, std::string_view text);

 private:
  char* memory_ = nullptr;
  unsigned char turn_[kCommunicators] = {};
};

}  // namespace warmgate::probe::nccl
