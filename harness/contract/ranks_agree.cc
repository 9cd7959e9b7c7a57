// ranks-agree: per communicator, every rank enters the same collectives in the same order; when one
// rank fails, the others end soon and say which.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "harness/contract/builtin.h"
#include "harness/contract/cause.h"
#include "harness/contract/communicator_order.h"
#include "harness/contract/probe_view.h"
#include "harness/contract/view.h"

namespace warmgate::contract {
namespace {

constexpr const char* kRanksAgree = "ranks-agree";

// A run of equal operations; positions count operations from the first of the communicator.
struct Run {
  std::string kind;
  std::int64_t bytes = 0, count = 1;
  std::size_t event = 0;
};

struct Order {
  std::vector<Run> runs;
};

// A claim of 2^60 operations must neither overflow a sum nor take time; runs are walked, not
// expanded.
constexpr std::int64_t kMaxCount = std::int64_t{1} << 40;

std::string operation(const Run* run) {
  return run ? fmt::format("{} of {} bytes", run->kind, run->bytes) : std::string("nothing more");
}

struct Divergence {
  std::int64_t position = 0;
  const Run* a = nullptr;
  const Run* b = nullptr;
};

// Where two orders differ first; a rank that has nothing more diverges only if both ended properly.
std::optional<Divergence> diverge(const Order& a, const Order& b, bool ends_count) {
  std::size_t i = 0, j = 0;
  std::int64_t left_a = 0, left_b = 0, position = 0;
  const Run *x = nullptr, *y = nullptr;
  while (true) {
    if (left_a == 0 && i < a.runs.size()) left_a = (x = &a.runs[i++])->count;
    if (left_b == 0 && j < b.runs.size()) left_b = (y = &b.runs[j++])->count;
    if (left_a == 0 && left_b == 0) return std::nullopt;
    if (left_a == 0 || left_b == 0) {
      if (!ends_count) return std::nullopt;
      return Divergence{position, left_a ? x : nullptr, left_b ? y : nullptr};
    }
    if (x->kind != y->kind || x->bytes != y->bytes) return Divergence{position, x, y};
    const std::int64_t same = std::min(left_a, left_b);
    left_a -= same;
    left_b -= same;
    position += same;
  }
}

class RanksAgreeJudge {
 public:
  explicit RanksAgreeJudge(const Context& context)
      : context_(context), view_(view_of(context)), communicators_(communicators_of(view_)) {}

  Result run() {
    collect();
    const bool by_nccl = !communicators_.empty();
    if (!by_nccl && orders_.empty() && was_asked(view_, "nccl"))
      return not_observed(kRanksAgree, {},
                          "no communicator of several ranks was seen in NCCL; collectives that "
                          "bypass it (custom all-reduce, symmetric memory) are not seen");
    if (!by_nccl && context_.trace.world <= 1 && ranks_.size() <= 1)
      return not_applicable(kRanksAgree, "one rank has nobody to agree with");
    if (!by_nccl && orders_.empty() && ends_.empty())
      return not_observed(kRanksAgree, {}, "no rank entered a collective");
    if (by_nccl && orders_.empty() && !anything_entered())
      return not_observed(kRanksAgree, {}, "no rank entered a collective");
    for (const auto& [communicator, by_rank] : orders_) compare(communicator, by_rank);
    failure();
    OrderJudgement order = judge_order(view_, communicators_);
    findings_.insert(findings_.end(), std::make_move_iterator(order.findings.begin()),
                     std::make_move_iterator(order.findings.end()));
    Result result = conclude(kRanksAgree, std::move(findings_), State::kKept, std::move(order.why));
    result.notes = std::move(order.notes);
    return result;
  }

 private:
  void collect() {
    for (std::size_t i = 0; i < view_.size(); ++i) {
      const trace::Event& e = view_.event(i);
      if (!e.rank || *e.rank < 0 || e.src == "nccl") continue;
      if (e.ev == "hello") ranks_.insert(*e.rank);
      if (e.ev == "bye") proper_.insert(*e.rank);
      if (e.ev == "process_end") ends_[*e.rank] = i;
      if (e.ev == "fault") faults_[*e.rank].push_back(i);
      if (e.ev != "collective") continue;
      ranks_.insert(*e.rank);
      Run run;
      run.kind = text(e, "kind");
      run.bytes = e.num("bytes");
      run.count = std::clamp<std::int64_t>(e.num("count", 1), 1, kMaxCount);
      run.event = i;
      orders_[std::string(text(e, "communicator"))][*e.rank].runs.push_back(std::move(run));
    }
  }

  bool anything_entered() const {
    for (const Communicator& communicator : communicators_) {
      for (const auto& [number, member] : communicator.members) {
        if (member.entered > 0 || member.p2p_launched > 0 || member.p2p_called > 0) return true;
      }
    }
    return false;
  }

  void compare(const std::string& communicator, const std::map<int, Order>& by_rank) {
    // Communicators of part of the ranks are legal, so only ranks that entered one are compared.
    const auto first = by_rank.begin();
    for (auto other = std::next(first); other != by_rank.end(); ++other) {
      const bool both = proper_.count(first->first) != 0 && proper_.count(other->first) != 0;
      const auto found = diverge(first->second, other->second, both);
      if (!found) continue;
      Finding f;
      f.contract = kRanksAgree;
      f.key = fmt::format("{}/order", communicator);
      f.rank = other->first;
      f.expected = fmt::format("operation {}: {}, as rank {} entered", found->position,
                               operation(found->a), first->first);
      f.seen = operation(found->b);
      f.message = fmt::format("on '{}' ranks part at operation {}: rank {} entered {}, rank {} {}",
                              communicator, found->position, first->first, operation(found->a),
                              other->first, operation(found->b));
      if (found->a) f.events.push_back(found->a->event);
      if (found->b) f.events.push_back(found->b->event);
      if (!f.events.empty()) f.phase = view_.phase(f.events.back());
      f.detail = {{"position", found->position}};
      findings_.push_back(std::move(f));
    }
  }

  // After the first failure the others end within the collectives' deadline, naming that rank.
  void failure() {
    const auto cause = first_cause(view_);
    if (!cause || cause->rank < 0 || cause->kind == Cause::Kind::kDeadline) return;
    const std::int64_t allowed_ms =
        context_.resolved ? std::max<std::int64_t>(0, context_.resolved->collective_deadline_ms)
                          : 10000;
    for (const auto& [rank, i] : ends_) {
      if (rank == cause->rank) continue;
      const trace::Event& e = view_.event(i);
      const std::int64_t late_ms = elapsed_ns(cause->t_ns, e.t_ns) / 1'000'000;
      // A second for the harness's own signals and for the process to wind up.
      if (late_ms - 1000 > allowed_ms) {
        Finding f = failed(*cause, rank, i);
        f.key = "failure/slow";
        f.expected = fmt::format("every rank ends within {} ms of the first failure", allowed_ms);
        f.seen = fmt::format("rank {} ended {} ms after it", rank, late_ms);
        f.message = fmt::format("rank {} failed first; {}", cause->rank, f.seen);
        findings_.push_back(std::move(f));
      }
      const auto it = faults_.find(rank);
      if (it == faults_.end()) continue;
      for (std::size_t k : it->second) {
        const trace::Event& fault = view_.event(k);
        if (!is_echo(fault) || fault.t_ns < cause->t_ns || names(fault, cause->rank)) continue;
        Finding f = failed(*cause, rank, k);
        f.key = "failure/unnamed";
        f.expected = fmt::format("rank {} is named", cause->rank);
        f.seen = std::string(text(fault, "message")).substr(0, 200);
        f.message = fmt::format("rank {} failed first, but rank {} does not say so: {}",
                                cause->rank, rank, f.seen);
        findings_.push_back(std::move(f));
      }
    }
  }

  static bool names(const trace::Event& fault, int rank) {
    if (fault.num("peer", -1) == rank || fault.num("failed_rank", -1) == rank) return true;
    const std::string message = fault.str("message"), name = std::to_string(rank);
    for (std::size_t at = message.find(name); at != std::string::npos;
         at = message.find(name, at + 1)) {
      const bool left = at == 0 || !std::isdigit(static_cast<unsigned char>(message[at - 1]));
      const std::size_t end = at + name.size();
      const bool right =
          end >= message.size() || !std::isdigit(static_cast<unsigned char>(message[end]));
      if (left && right) return true;
    }
    return false;
  }

  Finding failed(const Cause& cause, int rank, std::size_t event) const {
    Finding f;
    f.contract = kRanksAgree;
    f.phase = cause.phase;
    f.rank = rank;
    f.events = {cause.event, event};
    return f;
  }

  const Context& context_;
  const View& view_;
  std::vector<Communicator> communicators_;
  std::map<std::string, std::map<int, Order>> orders_;
  std::set<int> ranks_, proper_;
  std::map<int, std::size_t> ends_;
  std::map<int, std::vector<std::size_t>> faults_;
  std::vector<Finding> findings_;
};

class RanksAgree : public Contract {
 public:
  std::string_view name() const override { return kRanksAgree; }
  std::string_view promise() const override {
    return "per communicator every rank enters the same operations in the same order; one rank's "
           "failure soon ends all, and is named";
  }
  std::vector<std::string> needs() const override { return {}; }
  Result judge(const Context& context) const override {
    const View& view = view_of(context);
    if (context.trace.world > 1 && !view.emits("collective") && !was_asked(view, "nccl"))
      return not_observed(kRanksAgree, {"collective"}, "no source would have sent these events");
    return RanksAgreeJudge(context).run();
  }
};

}  // namespace

const Contract& ranks_agree_contract() {
  static const RanksAgree contract;
  return contract;
}

}  // namespace warmgate::contract
