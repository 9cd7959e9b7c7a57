// A log as a stream of bytes, wherever it lies: a file, stdin, a compressed archive. Archives are
// unpacked by their own program (gzip, zstd, xz, bzip2), so what a hostile one can do to memory
// ends with that process, and warmgate links none of them.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace warmgate::explain {

/// What was named is no log that can be read: missing, a folder, a pipe nobody writes to, a device,
/// no permission, a zip. The message begins with the name and says what to do instead.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Input {
 public:
  /// "-" is stdin. Regular files; pipes only as stdin or /dev/fd/N (a shell's <(…)), because
  /// opening a named one may wait for ever. Throws InputError.
  explicit Input(const std::string& name);
  ~Input();
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  /// At most `size` bytes of the log, unpacked; 0 at its end. Waits for a pipe's writer. Throws
  /// InputError if the file cannot be read on.
  std::size_t read(char* buffer, std::size_t size);

  /// As the user named it; "stdin" for "-".
  const std::string& name() const { return name_; }
  /// After the end: why the log may not be whole (a truncated or damaged archive); "" if it is.
  const std::string& trouble() const { return trouble_; }
  /// Bytes handed out so far.
  std::uint64_t bytes() const { return bytes_; }

 private:
  void open_file();
  void recognise();
  void start_unpacking(const char* const* argv);
  void push_packed();
  std::size_t read_plain(char* buffer, std::size_t size);
  std::size_t read_unpacked(char* buffer, std::size_t size);
  void end_unpacking();

  std::string name_, path_, trouble_;
  std::string head_;  // read to recognise the format, not handed out yet
  int file_ = -1;
  bool file_done_ = false;
  std::string format_;  // "" = plain
  pid_t unpacker_ = -1;
  int to_unpacker_ = -1, from_unpacker_ = -1, complaints_ = -1;
  std::uint64_t bytes_ = 0;
};

}  // namespace warmgate::explain
