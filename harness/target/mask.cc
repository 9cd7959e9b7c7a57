#include "harness/target/mask.h"

#include <algorithm>

#include "harness/trace/wire.h"

namespace warmgate::target {

std::vector<std::string> collect_secrets(const char* const* environ) {
  std::vector<std::string> out;
  for (; environ != nullptr && *environ != nullptr; ++environ) {
    const std::string_view entry = *environ;
    const std::size_t equal = entry.find('=');
    if (equal != std::string_view::npos)
      trace::find_named_secret(entry.substr(0, equal), entry.substr(equal + 1), out);
  }
  std::sort(out.begin(), out.end(), [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() > b.size() : a < b;
  });
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::string mask(std::string_view text, const std::vector<std::string>& secrets) {
  return trace::mask_secrets(text, secrets);
}

void mask_json(nlohmann::json& value, const std::vector<std::string>& secrets,
               std::vector<std::string>* found) {
  if (value.is_string()) {
    const std::string& text = value.get_ref<const std::string&>();
    std::string masked = trace::mask_part(text, 0, text.size(), secrets, found);
    if (masked != text) value = std::move(masked);
  } else if (value.is_structured()) {
    for (auto& item : value) mask_json(item, secrets, found);
  }
}

SecretSpotter::SecretSpotter(const std::vector<std::string>& secrets, bool shapes)
    : shapes_(shapes) {
  for (const std::string& secret : secrets) {
    if (secret.empty()) continue;
    needles_.push_back(secret);
    std::string quoted;
    trace::append_json_string(quoted, secret);
    const std::string escaped = quoted.substr(1, quoted.size() - 2);
    if (escaped != secret) needles_.push_back(escaped);
  }
  for (const std::string& needle : needles_) longest_ = std::max(longest_, needle.size());
}

void SecretSpotter::feed(std::string_view bytes) {
  if (seen_) return;
  if (shapes_) look_for_shapes(bytes);
  if (seen_ || needles_.empty()) return;
  const auto search = [&](std::string_view text) {
    for (const std::string& needle : needles_) {
      if (text.find(needle) != std::string_view::npos) return true;
    }
    return false;
  };
  // The border first: what was left over, and as much of the new piece as can complete a secret.
  carry_ += bytes.substr(0, longest_);
  seen_ = search(carry_) || search(bytes);
  if (bytes.size() >= longest_) carry_ = bytes.substr(bytes.size() - longest_);
  if (carry_.size() > 2 * longest_) carry_.erase(0, carry_.size() - longest_);
}

void SecretSpotter::look_for_shapes(std::string_view bytes) {
  // Lines are seldom torn, so that mostly there is nothing to look at twice.
  const std::size_t end = bytes.rfind('\n');
  if (end == std::string_view::npos && line_.size() + bytes.size() <= kLongestLine) {
    line_ += bytes;
  } else {
    const std::size_t size = end == std::string_view::npos ? bytes.size() : end;
    if (line_.empty()) {
      seen_ = trace::has_secret_shape(bytes.substr(0, size));
    } else {
      line_ += bytes.substr(0, size);
      seen_ = trace::has_secret_shape(line_);
    }
    if (end != std::string_view::npos) {
      line_ = bytes.substr(end + 1);
    } else {
      // The end of a line that is too long to be kept, wherever it came from.
      const std::string_view all = line_.empty() ? bytes : std::string_view(line_);
      line_ = std::string(all.substr(all.size() - std::min(all.size(), trace::kShapeMargin)));
    }
  }
}

bool SecretSpotter::seen() const { return seen_ || trace::has_secret_shape(line_); }

}  // namespace warmgate::target
