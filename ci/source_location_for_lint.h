// For ci/lint alone: clang before 16 lacks the builtin that libstdc++ makes std::source_location
// of, and leaves the name undeclared. The same members by the builtins that it has.
#pragma once

#if defined(__clang__) && !__has_builtin(__builtin_source_location)
namespace std {
struct source_location {
  static constexpr source_location current(const char* file = __builtin_FILE(),
                                           const char* function = __builtin_FUNCTION(),
                                           unsigned line = __builtin_LINE()) noexcept {
    source_location out;
    out.file_ = file;
    out.function_ = function;
    out.line_ = line;
    return out;
  }
  constexpr unsigned line() const noexcept { return line_; }
  constexpr unsigned column() const noexcept { return 0; }
  constexpr const char* file_name() const noexcept { return file_; }
  constexpr const char* function_name() const noexcept { return function_; }

 private:
  const char *file_ = "", *function_ = "";
  unsigned line_ = 0;
};
}  // namespace std
#endif
