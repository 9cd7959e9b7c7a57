// Secrets in text: those whose value is known, and those that show by their shape (credentials in
// a URL, signed queries, Authorization headers, well-known prefixes of tokens, private keys). Every
// artefact goes through here before it leaves the program.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace warmgate::trace {

inline constexpr std::string_view kMask = "[secret]";
/// Shorter values, down to 4 bytes, are masked only where they are whole words, and never where
/// they are ordinary ones or numbers.
inline constexpr std::size_t kMinSecretBytes = 6;
/// A token that is cut is no longer known by its shape: who cuts texts looks this far beyond.
inline constexpr std::size_t kShapeMargin = 1024;

/// True for names like HF_TOKEN, AWS_SECRET_ACCESS_KEY, DB_PASSWORD, api-key; false for KEYBOARD,
/// TOKENIZERS_…
bool is_secret_name(std::string_view name);

/// False for what would mask ordinary text if it were masked by value: short ones, numbers, words
/// like None and EMPTY, our own mask.
bool worth_masking(std::string_view value);

/// A stretch [begin, end) of a text.
struct Stretch {
  std::size_t begin = 0, end = 0;
};

/// What in `text` is a secret by its shape, sorted, not overlapping. Only the secret itself: of
/// `https://user:pass@host` the password, of `?X-Amz-Signature=ab` what follows the sign. Linear.
std::vector<Stretch> secret_shapes(std::string_view text);
bool has_secret_shape(std::string_view text);

/// Appends the values that secret_shapes() finds and that are worth masking elsewhere too.
void find_secrets(std::string_view text, std::vector<std::string>& out);
/// The same of the words of a command line, in which a secret may also be the word after its
/// option: `--api-key VALUE`, `--api-key=VALUE`, `HF_TOKEN=VALUE`, `target.command.env.X_TOKEN=V`.
void find_argument_secrets(const std::vector<std::string>& argv, std::vector<std::string>& out);
/// The value of a variable or a field whose name says that it is one.
void find_named_secret(std::string_view name, std::string_view value,
                       std::vector<std::string>& out);

/// Each value also as JSON, a URL and a shell write it and, where it is percent-encoded, decoded;
/// longest first, each once. What mask_secrets() wants.
std::vector<std::string> spellings(std::vector<std::string> values);

/// `text` with every secret replaced by kMask: those in `secrets` and those that show by their
/// shape. Where they overlap, the whole stretch is.
std::string mask_secrets(std::string_view text, const std::vector<std::string>& secrets);

/// As mask_secrets() of the whole `text`, but keeps only what came from bytes [begin, end): a
/// secret that crosses a border is masked, never cut in half. With `found`, what shows by its shape
/// is appended to it.
std::string mask_part(std::string_view text, std::size_t begin, std::size_t end,
                      const std::vector<std::string>& secrets,
                      std::vector<std::string>* found = nullptr);

}  // namespace warmgate::trace
