// Secrets are masked by value: wherever a token turns up (a log, an argument, an event), not only
// where its name does.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace warmgate::target {

inline constexpr std::string_view kMask = "[secret]";
/// Shorter values would mask ordinary words.
inline constexpr std::size_t kMinSecretBytes = 6;

/// True for names like HF_TOKEN, AWS_SECRET_ACCESS_KEY, DB_PASSWORD; false for KEYBOARD,
/// TOKENIZERS_…
bool is_secret_name(std::string_view name);

/// Values (at least 6 bytes) of the variables of `environ` (NAME=value, null-terminated) whose name
/// is a secret's, and passwords of URLs with user:password@ in any variable. Sorted, longest first.
std::vector<std::string> collect_secrets(const char* const* environ);

/// `text` with every occurrence of a secret replaced by kMask. Where secrets overlap, the whole
/// stretch is.
std::string mask(std::string_view text, const std::vector<std::string>& secrets);

/// As mask() of the whole `text`, but keeps only what came from bytes [begin, end): a secret that
/// crosses a border is masked, never cut in half.
std::string mask_part(std::string_view text, std::size_t begin, std::size_t end,
                      const std::vector<std::string>& secrets);

/// Finds whether any secret occurs in a stream that comes in pieces.
class SecretSpotter {
 public:
  explicit SecretSpotter(const std::vector<std::string>& secrets);
  void feed(std::string_view bytes);
  bool seen() const { return seen_; }

 private:
  std::vector<std::string> needles_;  // as they are, and as JSON writes them
  std::size_t longest_ = 0;
  std::string carry_;
  bool seen_ = false;
};

}  // namespace warmgate::target
