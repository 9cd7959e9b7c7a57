#include "harness/target/capture.h"

#include <algorithm>
#include <array>

#include "harness/target/mask.h"

namespace warmgate::target {
namespace {

constexpr std::array<std::string_view, 14> kWords = {
    "error", "assert",    "traceback", "exception",     "fatal",     "killed",    "panic",
    "abort", "terminate", "segfault",  "out of memory", "bad_alloc", "sanitizer", "segmentation"};

// Three bytes that every word above holds, chosen to be rare in ordinary text. ASCII letters differ
// from their capitals in one bit; folding it also folds '@' onto '`' and '_' onto DEL, which only
// makes the filter a little less selective.
constexpr unsigned char kTriple[][3] = {
    {'e', 'r', 'r'}, {'s', 's', 'e'}, {'c', 'e', 'b'},  {'x', 'c', 'e'}, {'f', 'a', 't'},
    {'i', 'l', 'l'}, {'p', 'a', 'n'}, {'b', 'o', 'r'},  {'r', 'm', 'i'}, {'e', 'g', 'f'},
    {'e', 'g', 'm'}, {'f', ' ', 'm'}, {'d', 0x7f, 'a'}, {'n', 'i', 't'}};
constexpr std::size_t kTriples = std::size(kTriple);

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; }

// 16 bytes at a time through the compiler's vector types (any architecture).
using Block = unsigned char __attribute__((vector_size(16)));

}  // namespace

bool looks_like_cause(std::string_view line) {
  std::string folded(line);
  std::transform(folded.begin(), folded.end(), folded.begin(), lower);
  return std::any_of(kWords.begin(), kWords.end(),
                     [&](std::string_view word) { return folded.find(word) != std::string::npos; });
}

// At -O0 and under sanitizers this loop would be ten times slower than the pipe it follows.
__attribute__((no_sanitize("address", "undefined", "thread"), optimize("O3"))) bool may_hold_cause(
    std::string_view text) {
  const char* const data = text.data();
  const std::size_t size = text.size();
  if (size < 5) return false;  // the shortest word
  if (size < sizeof(Block) + 2) return true;
  Block any{};
  const std::size_t last = size - (sizeof(Block) + 2);
  for (std::size_t at = 0;; at = at + 16 < last ? at + 16 : last) {
    Block x, y, z;
    __builtin_memcpy(&x, data + at, sizeof x);
    __builtin_memcpy(&y, data + at + 1, sizeof y);
    __builtin_memcpy(&z, data + at + 2, sizeof z);
    x |= 0x20;
    y |= 0x20;
    z |= 0x20;
#pragma GCC unroll 16
    for (std::size_t i = 0; i < kTriples; ++i) {
      any |= reinterpret_cast<Block>((x == kTriple[i][0]) & (y == kTriple[i][1]) &
                                     (z == kTriple[i][2]));
    }
    if (at == last) break;
  }
  std::uint64_t halves[2];
  __builtin_memcpy(halves, &any, sizeof halves);
  return (halves[0] | halves[1]) != 0;
}

Capture::Capture(const std::vector<std::string>& secrets)
    : secrets_(secrets), margin_(trace::kShapeMargin) {
  for (const std::string& secret : secrets) margin_ = std::max(margin_, secret.size());
}

void Capture::feed(std::string_view bytes) {
  total_ += bytes.size();
  const std::size_t head_room = kHeadBytes + margin_ - std::min(head_.size(), kHeadBytes + margin_);
  head_ += bytes.substr(0, head_room);
  keep_tail(bytes);
  scan(bytes);
}

void Capture::keep_tail(std::string_view bytes) {
  const std::size_t limit = kTailBytes + margin_;
  if (bytes.size() >= limit) {
    tail_ = bytes.substr(bytes.size() - limit);
    return;
  }
  tail_ += bytes;
  // Cut only now and then, so that many small writes do not move the whole tail each time.
  if (tail_.size() > 2 * limit) tail_.erase(0, tail_.size() - limit);
}

void Capture::scan(std::string_view bytes) {
  constexpr std::size_t kStride = 4096;
  const std::size_t keep = kLineBytes + margin_;
  const char* looked_at = bytes.data();  // a stretch that may hold one is not looked at again
  while (!bytes.empty()) {
    // Nothing pending and nothing in the next stretch: skip it up to its last line break.
    const std::string_view stretch = bytes.substr(0, kStride);
    if (rest_.empty() && !rest_cut_ && bytes.data() >= looked_at) {
      looked_at = bytes.data() + stretch.size();
      if (!may_hold_cause(stretch)) {
        const std::size_t end = stretch.rfind('\n');
        if (end != std::string_view::npos) {
          bytes.remove_prefix(end + 1);
          continue;
        }
      }
    }
    const std::size_t end = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, end);
    if (rest_.empty() && !rest_cut_ && end != std::string_view::npos) {
      line(piece.substr(0, keep));
    } else {
      const std::size_t room = keep - std::min(keep, rest_.size());
      rest_ += piece.substr(0, room);
      rest_cut_ = rest_cut_ || piece.size() > room;
      if (end != std::string_view::npos) {
        line(rest_);
        rest_.clear();
        rest_cut_ = false;
      }
    }
    if (end == std::string_view::npos) return;
    bytes.remove_prefix(end + 1);
  }
}

void Capture::line(std::string_view text) {
  if (!may_hold_cause(text) || !looks_like_cause(text)) return;
  std::string kept(text.substr(0, kLineBytes + margin_));
  if (first_.size() < kMatchedLines / 2) {
    first_.push_back(std::move(kept));
  } else if (last_.size() < kMatchedLines / 2) {
    last_.push_back(std::move(kept));
  } else {
    last_[next_last_] = std::move(kept);
    next_last_ = (next_last_ + 1) % last_.size();
  }
}

std::string Capture::masked(std::string_view text, std::size_t begin, std::size_t end) {
  return mask_part(text, begin, end, secrets_, &found_);
}

void Capture::finish(verdict::Output& out) {
  if (!rest_.empty()) line(rest_);
  rest_.clear();
  out.bytes = total_;
  if (total_ <= kHeadBytes + kTailBytes) {
    // Everything is still here, in two overlapping pieces.
    const std::size_t missing = total_ - std::min<std::size_t>(head_.size(), total_);
    const std::string all = head_ + tail_.substr(tail_.size() - missing);
    out.head = masked(all, 0, all.size());
    out.tail.clear();
  } else {
    out.head = masked(head_, 0, kHeadBytes);
    out.tail = masked(tail_, tail_.size() - std::min(kTailBytes, tail_.size()), tail_.size());
  }
  const auto keep = [&](const std::string& text) {
    std::string line = masked(text, 0, kLineBytes);
    while (!line.empty() && line.back() == '\r') line.pop_back();
    out.matched.push_back(std::move(line));
  };
  out.matched.clear();
  for (const std::string& text : first_) keep(text);
  for (std::size_t i = 0; i < last_.size(); ++i) keep(last_[(next_last_ + i) % last_.size()]);
  std::sort(found_.begin(), found_.end());
  found_.erase(std::unique(found_.begin(), found_.end()), found_.end());
}

}  // namespace warmgate::target
