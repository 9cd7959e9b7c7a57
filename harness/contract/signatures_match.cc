// signatures-match: a kernel that serving launches with some argument signature was launched with
// that signature before ready, on layers of the same kind. Another dtype, rank, alignment or class
// of an integer is another specialisation, another tuned entry, or another code path.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "harness/contract/builtin.h"
#include "harness/contract/fold.h"
#include "harness/contract/view.h"

namespace warmgate::contract {
namespace {

constexpr const char* kSignaturesMatch = "signatures-match";

std::vector<std::string_view> arguments(std::string_view signature) {
  std::vector<std::string_view> out;
  while (true) {
    const std::size_t comma = signature.find(',');
    out.push_back(signature.substr(0, comma));
    if (comma == std::string_view::npos) return out;
    signature.remove_prefix(comma + 1);
  }
}

// In how many arguments two signatures differ; those that only one of them has count too.
std::size_t distance(const std::vector<std::string_view>& a,
                     const std::vector<std::string_view>& b) {
  const std::size_t common = std::min(a.size(), b.size());
  std::size_t out = std::max(a.size(), b.size()) - common;
  for (std::size_t i = 0; i < common; ++i) out += a[i] != b[i];
  return out;
}

std::string difference(std::string_view served, std::string_view warmed) {
  const auto a = arguments(served), b = arguments(warmed);
  std::string out;
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    const std::string_view x = i < a.size() ? a[i] : "nothing", y = i < b.size() ? b[i] : "nothing";
    if (x == y) continue;
    out += fmt::format("{}argument {} is {}, was {}", out.empty() ? "" : "; ", i + 1, x, y);
  }
  return out;
}

struct Seen {
  std::map<std::string, std::size_t> early;  // signature → first event that carried it
  struct Served {
    std::size_t event = 0;
    int layer = -1;
    std::string role;
  };
  std::map<std::string, Served> serve;
};
struct Where {
  std::string kind, kernel, key;
  int rank = 0;
  auto operator<=>(const Where&) const = default;
};

class SignaturesMatch : public Contract {
 public:
  std::string_view name() const override { return kSignaturesMatch; }
  std::string_view promise() const override {
    return "for each kernel and layer kind, the argument signatures of serving are among those of "
           "start-up";
  }
  std::vector<std::string> needs() const override { return {"launch"}; }

  Result judge(const Context& context) const override {
    const View& view = view_of(context);
    std::map<Where, Seen> all;
    for (std::size_t i = 0; i < view.size(); ++i) {
      const trace::Event& e = view.event(i);
      const std::string_view signature = text(e, "signature");
      if (e.ev != "launch" || signature.empty()) continue;
      Seen& seen = all[{std::string(text(e, "layer_kind")), std::string(text(e, "kernel")),
                        std::string(text(e, "key")), rank_of(e)}];
      if (view.is_startup(view.phase(i))) {
        seen.early.emplace(signature, i);
      } else if (view.phase(i) == "serve") {
        seen.serve.try_emplace(std::string(signature),
                               Seen::Served{i, layer_of(e), std::string(text(e, "role"))});
      }
    }
    Fold fold;
    std::size_t compared = 0, unwarmed = 0;
    for (const auto& [where, seen] : all) {
      if (seen.serve.empty()) continue;
      // A kernel that nothing before ready launched is warmup-complete's finding, or
      // keys-covered's.
      if (seen.early.empty()) {
        ++unwarmed;
        continue;
      }
      for (const auto& [signature, served] : seen.serve) {
        ++compared;
        if (seen.early.count(signature) != 0) continue;
        fold.add(finding(where, seen, signature, served), signature);
      }
    }
    std::vector<Finding> findings = fold.take();
    if (findings.empty() && compared == 0)
      return not_observed(kSignaturesMatch, {},
                          unwarmed > 0 ? "nothing that serving launches was launched before ready"
                                       : "no launch of serving carries a signature");
    return conclude(kSignaturesMatch, std::move(findings), State::kKept,
                    unwarmed == 0 ? ""
                                  : fmt::format("{} first launched in serve: nothing to compare",
                                                counted(unwarmed, "kernel")));
  }

 private:
  static Finding finding(const Where& where, const Seen& seen, const std::string& signature,
                         const Seen::Served& served) {
    const auto wanted = arguments(signature);
    const auto near =
        std::min_element(seen.early.begin(), seen.early.end(), [&](const auto& a, const auto& b) {
          return distance(wanted, arguments(a.first)) < distance(wanted, arguments(b.first));
        });
    Finding f;
    f.contract = kSignaturesMatch;
    f.phase = "serve";
    f.layer = served.layer;
    f.layer_kind = where.kind;
    f.role = served.role;
    f.rank = where.rank;
    f.key = fmt::format("{}/{}", where.kind.empty() ? "engine" : where.kind,
                        where.key.empty() ? where.kernel : where.key);
    f.expected = fmt::format("one of {} before ready, the nearest {}",
                             counted(seen.early.size(), "signature"), near->first);
    f.seen = signature;
    f.message =
        fmt::format("serving launches {} on {} with a signature that start-up never had: {}",
                    where.key.empty() ? where.kernel : where.key,
                    where.kind.empty() ? "the engine" : where.kind + " layers",
                    difference(signature, near->first));
    f.events = {served.event, near->second};
    return f;
  }
};

}  // namespace

const Contract& signatures_match_contract() {
  static const SignaturesMatch contract;
  return contract;
}

}  // namespace warmgate::contract
