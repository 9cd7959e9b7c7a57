// cache-sound: processes and starts that share a cache of compiled kernels compile each key once. A
// race, an address that no second start finds, and damage that is not mended all look like work
// done twice.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "harness/contract/builtin.h"
#include "harness/contract/fold.h"
#include "harness/contract/view.h"

namespace warmgate::contract {
namespace {

constexpr const char* kCacheSound = "cache-sound";

/// What became of one key for one architecture, over all processes of the run.
struct Entry {
  std::string kernel, key;
  std::set<int> ranks;  // that compiled it
  std::size_t compiled = 0, rebuilt = 0;
  std::vector<std::size_t> events;
};

struct Compiles {
  std::map<std::pair<std::string, std::string>, Entry> entries;  // by key and architecture
  std::size_t uncached = 0, unwritable = 0, unsaid = 0, from_cache = 0, compiled = 0, rebuilt = 0;
  std::int64_t earlier = 0;       // starts of the same that had done their work before
  std::size_t earlier_event = 0;  // which says so
};

Compiles compiles_of(const View& view) {
  Compiles out;
  for (std::size_t i = 0; i < view.size(); ++i) {
    const trace::Event& e = view.event(i);
    if (e.ev == "store" && e.src == "harness" && text(e, "status") == "filled") {
      out.earlier = e.num("starts");
      out.earlier_event = i;
    }
    if (e.ev != "compile" || e.src == "harness") continue;
    const std::string_view cache = text(e, "cache"), source = text(e, "source");
    if (cache != "disk") {
      ++(cache == "none" ? out.uncached : cache == "unwritable" ? out.unwritable : out.unsaid);
      continue;
    }
    if (source == "disk") ++out.from_cache;
    if (source != "compiler") continue;
    const std::string key(text(e, "key"));
    Entry& entry = out.entries[{key, std::string(text(e, "arch"))}];
    entry.key = key;
    entry.kernel = key.substr(0, key.find('{'));
    entry.ranks.insert(rank_of(e));
    ++entry.compiled, ++out.compiled;
    entry.rebuilt += e.flag("rebuilt") ? 1 : 0;
    out.rebuilt += e.flag("rebuilt") ? 1 : 0;
    if (entry.events.size() < kMaxProof) entry.events.push_back(i);
  }
  return out;
}

/// One finding a kernel: 59 keys of one race are one thing to mend.
class ByKernel {
 public:
  explicit ByKernel(const View& view) : view_(view) {}
  void add(const char* kind, const std::string& expected, const std::string& seen,
           const Entry& entry) {
    const std::string key = std::string(kind) + "/" + entry.kernel;
    const auto [it, fresh] = index_.try_emplace(key, findings_.size());
    if (fresh) {
      Finding f;
      f.contract = kCacheSound;
      f.key = key;
      f.expected = expected;
      f.seen = seen;
      f.count = 0;
      if (!entry.events.empty()) f.phase = view_.phase(entry.events.front());
      f.message = fmt::format("{}: {}; expected {}", entry.key, seen, expected);
      findings_.push_back(std::move(f));
    }
    Finding& f = findings_[it->second];
    ++f.count;
    if (f.detail["keys"].size() < kMaxProof) f.detail["keys"].push_back(entry.key);
    for (const std::size_t i : entry.events)
      if (f.events.size() < kMaxProof) f.events.push_back(i);
  }
  std::vector<Finding> take() {
    for (Finding& f : findings_)
      if (f.count > 1) f.message += fmt::format(" (and {} more keys like it)", f.count - 1);
    return std::move(findings_);
  }

 private:
  const View& view_;
  std::map<std::string, std::size_t> index_;
  std::vector<Finding> findings_;
};

class CacheSound : public Contract {
 public:
  std::string_view name() const override { return kCacheSound; }
  std::string_view promise() const override {
    return "a key is compiled once by all processes that share a cache, not again by the next "
           "start, and a damaged entry once more";
  }
  std::vector<std::string> needs() const override { return {"compile"}; }

  Result judge(const Context& context) const override {
    const View& view = view_of(context);
    const Compiles seen = compiles_of(view);
    if (seen.from_cache + seen.compiled == 0) {
      if (seen.unwritable > 0)
        return not_observed(kCacheSound, {},
                            "nothing could be kept: the kernel cache, or its lock, cannot be used");
      if (seen.unsaid > 0)
        return not_observed(kCacheSound, {}, "no compilation says which cache it went through");
      return not_applicable(kCacheSound, seen.uncached > 0 ? "no kernels are kept on disk"
                                                           : "nothing was compiled at run time");
    }
    ByKernel findings(view);
    for (const auto& [name, entry] : seen.entries) {
      if (entry.rebuilt > 1)
        findings.add("damaged", "a damaged entry is replaced by the first that meets it",
                     fmt::format("met and compiled anew {} times", entry.rebuilt), entry);
      if (entry.compiled > 1)
        findings.add("twice", "one compilation for all processes that share the cache",
                     fmt::format("compiled {} times, by {}", entry.compiled,
                                 counted(entry.ranks.size(), "rank")),
                     entry);
      // A damaged entry has to be compiled again, whoever had made it.
      if (seen.earlier > 0 && entry.compiled > entry.rebuilt)
        findings.add("anew", "found in the cache, where an earlier start of the same put it",
                     fmt::format("compiled at start {}", seen.earlier + 1), entry);
    }
    Result result =
        conclude(kCacheSound, findings.take(), State::kKept,
                 fmt::format("{} compiled, {} found in the cache, {} damaged and mended{}{}",
                             counted(seen.compiled, "key"), seen.from_cache, seen.rebuilt,
                             seen.earlier > 0 ? fmt::format("; start {}", seen.earlier + 1) : "",
                             seen.unwritable > 0
                                 ? fmt::format("; {} more could not be kept", seen.unwritable)
                                 : ""));
    for (Finding& f : result.findings)
      if (f.key.rfind("anew/", 0) == 0) add_proof(f, seen.earlier_event);
    return result;
  }
};

}  // namespace

const Contract& cache_sound_contract() {
  static const CacheSound contract;
  return contract;
}

}  // namespace warmgate::contract
