#include "harness/explain/patterns.h"

#include <algorithm>
#include <stdexcept>

#include "harness/explain/reader.h"

#ifdef WARMGATE_HAVE_RE2
#include <re2/re2.h>
#include <re2/set.h>

#include <map>
#endif

namespace warmgate::explain {

#ifdef WARMGATE_HAVE_RE2
bool available() { return true; }
std::string availability() { return "RE2"; }
#else
bool available() { return false; }
std::string availability() { return "built without RE2 (package libre2-dev): no log is read"; }
#endif

namespace internal {

#ifdef WARMGATE_HAVE_RE2

namespace {

RE2::Options options() {
  RE2::Options out;
  out.set_encoding(RE2::Options::EncodingLatin1);
  out.set_log_errors(false);
  out.set_dot_nl(true);
  // The automaton is built as text asks for its states; hostile text may ask for many, then RE2
  // starts over rather than take more.
  out.set_max_mem(48 << 20);
  return out;
}

}  // namespace

struct PatternSet::Impl {
  struct One {
    std::unique_ptr<RE2> re;
    std::vector<std::string> names;
    std::vector<int> numbers;  // of the groups named
  };
  RE2::Set set{options(), RE2::ANCHOR_START};
  std::vector<One> patterns;
};

PatternSet::PatternSet() : impl_(std::make_unique<Impl>()) {}
PatternSet::~PatternSet() = default;
PatternSet::PatternSet(PatternSet&&) noexcept = default;
PatternSet& PatternSet::operator=(PatternSet&&) noexcept = default;

std::string PatternSet::add(const std::string& pattern) {
  Impl::One one;
  RE2::Options opts = options();
  opts.set_max_mem(4 << 20);
  one.re = std::make_unique<RE2>(pattern, opts);
  if (!one.re->ok()) return one.re->error() + ": " + one.re->error_arg();
  if (one.re->Match("", 0, 0, RE2::ANCHOR_START, nullptr, 0)) return "it matches an empty line";
  for (const auto& [number, name] : one.re->CapturingGroupNames()) {
    one.names.push_back(name);
    one.numbers.push_back(number);
  }
  std::string error;
  if (impl_->set.Add(pattern, &error) < 0) return error;
  impl_->patterns.push_back(std::move(one));
  return "";
}

std::string PatternSet::compile() {
  return impl_->set.Compile() ? "" : "the patterns together need more memory than is allowed";
}

int PatternSet::size() const { return static_cast<int>(impl_->patterns.size()); }

const std::vector<std::string>& PatternSet::groups(int pattern) const {
  return impl_->patterns[static_cast<std::size_t>(pattern)].names;
}

void PatternSet::match(std::string_view text, std::vector<int>& found) const {
  found.clear();
  if (impl_->patterns.empty()) return;  // RE2 asks for a set that was compiled
  RE2::Set::ErrorInfo error;
  impl_->set.Match(re2::StringPiece(text.data(), text.size()), &found, &error);
  if (found.size() > 1) std::sort(found.begin(), found.end());
}

bool PatternSet::capture(int pattern, std::string_view text,
                         std::vector<std::string_view>& groups) const {
  const Impl::One& one = impl_->patterns[static_cast<std::size_t>(pattern)];
  constexpr int kMost = 24;
  re2::StringPiece pieces[kMost];
  const int count = std::min(kMost, one.re->NumberOfCapturingGroups() + 1);
  groups.assign(one.names.size(), {});
  if (!one.re->Match(re2::StringPiece(text.data(), text.size()), 0, text.size(), RE2::ANCHOR_START,
                     pieces, count)) {
    return false;
  }
  for (std::size_t i = 0; i < one.names.size(); ++i) {
    if (one.numbers[i] >= count) continue;
    const re2::StringPiece& piece = pieces[one.numbers[i]];
    if (piece.data() != nullptr) groups[i] = {piece.data(), piece.size()};
  }
  return true;
}

#else  // WARMGATE_HAVE_RE2

struct PatternSet::Impl {
  std::vector<std::string> none;
};

PatternSet::PatternSet() : impl_(std::make_unique<Impl>()) {}
PatternSet::~PatternSet() = default;
PatternSet::PatternSet(PatternSet&&) noexcept = default;
PatternSet& PatternSet::operator=(PatternSet&&) noexcept = default;
std::string PatternSet::add(const std::string&) { return availability(); }
std::string PatternSet::compile() { return availability(); }
int PatternSet::size() const { return 0; }
const std::vector<std::string>& PatternSet::groups(int) const { return impl_->none; }
void PatternSet::match(std::string_view, std::vector<int>& found) const { found.clear(); }
bool PatternSet::capture(int, std::string_view, std::vector<std::string_view>&) const {
  return false;
}

#endif

}  // namespace internal
}  // namespace warmgate::explain
