#include "harness/contract/communicator_order.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/contract/cause.h"
#include "harness/contract/probe_view.h"

namespace warmgate::contract {

namespace {

constexpr const char* kOrder = "ranks-agree";
// Until so shortly before the deadline nothing has hung: members of a run that goes on are a few
// operations apart at any moment.
constexpr std::int64_t kStillGoingNs = 1'000'000'000;

// NCCL asks for equal counts of all members in every collective. What only moves bytes may be named
// in another type, as long as they are as many.
bool same_size(const Entered& a, const Entered& b) {
  if (a.kind == "AllGather" || a.kind == "Broadcast") return a.bytes == b.bytes;
  return a.elements == b.elements && a.type == b.type;
}

std::string exact_text(const Entered& e) {
  return e.elements < 0 ? operation_text(e)
                        : fmt::format("{} of {} x {}", e.kind, e.elements, e.type);
}

std::string members_text(const std::vector<const Member*>& members) {
  std::string out = members.size() == 1 ? "member " : "members ";
  for (std::size_t i = 0; i < members.size() && i < 16; ++i)
    out += fmt::format("{}{}", i == 0 ? "" : ", ", members[i]->number);
  if (members.size() > 16) out += fmt::format(" and {} more", members.size() - 16);
  return out;
}

class OrderJudge {
 public:
  OrderJudge(const View& view, OrderJudgement& out) : view_(view), out_(out) {
    for (std::size_t i = 0; i < view.size(); ++i) {
      const trace::Event& e = view.event(i);
      if (e.ev == "deadline" && !deadline_ns_) deadline_ns_ = e.t_ns;
    }
    failed_ = first_cause(view).has_value();
  }

  /// Who waits for whom, once all communicators are known: one that is behind because it waits
  /// somewhere else is a victim, as long as there is somebody who is not.
  void conclude_hung() {
    const auto victim = [&](const Stuck& s) {
      return std::all_of(s.behind.begin(), s.behind.end(),
                         [&](const Member* m) { return waits_elsewhere(*m, s) != nullptr; });
    };
    const bool all = std::all_of(stuck_.begin(), stuck_.end(), victim);
    for (const Stuck& each : stuck_)
      (victim(each) && !all ? out_.notes : out_.findings).push_back(told(each));
  }

  void judge(const Communicator& communicator) {
    const std::size_t before = out_.findings.size();
    const Member& first = communicator.members.begin()->second;
    for (auto it = std::next(communicator.members.begin()); it != communicator.members.end(); ++it)
      compare(communicator, first, it->second);
    if (out_.findings.size() != before) return;  // who parted explains who waits
    if (deadline_ns_) {
      hung(communicator);
    } else if (failed_) {
      where_it_ended(communicator);
    }
    if (deadline_ns_ || failed_) transfers(communicator);
  }

 private:
  struct Stuck {
    const Communicator* communicator;
    std::int64_t least;  // operations that everybody entered
    std::vector<const Member*> behind, waiting;
  };

  Finding finding(const Communicator& c, const char* what, const Member& member,
                  const Entered* proof) const {
    Finding f;
    f.contract = kOrder;
    f.key = c.label + "/" + what;
    f.rank = member.rank;
    if (proof != nullptr) {
      f.events.push_back(proof->event);
      f.phase = view_.phase(proof->event);
    }
    return f;
  }

  void parted(const Communicator& c, const Member& a, const Member& b, std::int64_t position,
              const Entered* x, const Entered* y, bool size) {
    Finding f = finding(c, size ? "size" : "order", b, y != nullptr ? y : x);
    if (x != nullptr && y != nullptr) f.events.insert(f.events.begin(), x->event);
    const auto told = [&](const Entered* e) {
      return e == nullptr ? std::string("nothing more")
             : size       ? exact_text(*e)
                          : operation_text(*e);
    };
    f.expected = fmt::format("operation {}: {}, as {} entered", position, told(x), member_text(a));
    f.seen = told(y);
    f.message = fmt::format("on '{}' members part at operation {}: {} entered {}, {} {}", c.label,
                            position, member_text(a), told(x), member_text(b), told(y));
    if (x != nullptr && y != nullptr && x->root != y->root && x->kind == y->kind)
      f.message += fmt::format(" (root {} and {})", x->root, y->root);
    f.detail = {{"position", position}, {"communicator", c.id}};
    out_.findings.push_back(std::move(f));
  }

  void compare(const Communicator& c, const Member& a, const Member& b) {
    const std::int64_t lines = static_cast<std::int64_t>(std::min(a.ops.size(), b.ops.size()));
    for (std::int64_t i = 0; i < lines; ++i) {
      const Entered &x = a.ops[static_cast<std::size_t>(i)],
                    &y = b.ops[static_cast<std::size_t>(i)];
      const bool other = x.kind != y.kind || x.root != y.root;
      if (other || !same_size(x, y)) return parted(c, a, b, i, &x, &y, !other);
    }
    if (digests(c, a, b)) return;
    // NCCL before 2.28 does not tell a replayed graph from a call, and over several nodes not every
    // member sees the replays.
    const bool countable = c.api >= 5 || c.nodes <= 1;
    if (a.ended && b.ended && !failed_ && !deadline_ns_ && countable && a.entered != b.entered) {
      const std::int64_t position = std::min(a.entered, b.entered);
      const Entered *x = a.at(position), *y = b.at(position);
      if (x == nullptr && y == nullptr) return ends(c, a, b);
      parted(c, a, b, position, x, y, false);
    }
  }

  void ends(const Communicator& c, const Member& a, const Member& b) {
    Finding f = finding(c, "order", b, nullptr);
    f.expected = fmt::format("{} operations, as {} entered", a.entered, member_text(a));
    f.seen = fmt::format("{} operations", b.entered);
    f.message = fmt::format("on '{}' {} entered {} operations, {} {}", c.label, member_text(a),
                            a.entered, member_text(b), b.entered);
    out_.findings.push_back(std::move(f));
  }

  // What has no lines any more: the orders of both up to the same number of operations.
  bool digests(const Communicator& c, const Member& a, const Member& b) {
    std::int64_t same = static_cast<std::int64_t>(std::min(a.ops.size(), b.ops.size()));
    for (const auto& [n, digest] : a.digests) {
      const auto other = b.digests.find(n);
      if (other == b.digests.end()) continue;
      if (digest == other->second) {
        same = std::max(same, n);
        continue;
      }
      Finding f = finding(c, "order", b, nullptr);
      f.expected = "the same operations in the same order";
      f.seen = fmt::format("others between operation {} and {}", same, n - 1);
      f.message = fmt::format(
          "on '{}' {} and {} part somewhere between operation {} and {}, of which no lines were "
          "kept",
          c.label, member_text(a), member_text(b), same, n - 1);
      f.detail = {{"from", same}, {"to", n - 1}, {"communicator", c.id}};
      out_.findings.push_back(std::move(f));
      return true;
    }
    return false;
  }

  // Who is behind, and who waits for it.
  void hung(const Communicator& c) {
    std::int64_t least = INT64_MAX, most = 0, newest = 0;
    for (const auto& [number, member] : c.members) {
      least = std::min(least, member.entered);
      most = std::max(most, member.entered);
      newest = std::max(newest, member.last_ns);
    }
    if (least == most || c.members.size() < 2) return;
    if (elapsed_ns(newest, *deadline_ns_) < kStillGoingNs) {
      where_it_ended(c);
      return;
    }
    Stuck stuck{&c, least, {}, {}};
    for (const auto& [number, member] : c.members)
      (member.entered == least ? stuck.behind : stuck.waiting).push_back(&member);
    stuck_.push_back(std::move(stuck));
  }

  // The other communicator in which this member's process waits; nullptr if it waits in none.
  const Stuck* waits_elsewhere(const Member& member, const Stuck& here) const {
    for (const Stuck& each : stuck_) {
      if (&each == &here) continue;
      for (const Member* waiting : each.waiting) {
        if (waiting->pid == member.pid) return &each;
      }
    }
    return nullptr;
  }

  Finding told(const Stuck& s) const {
    const Communicator& c = *s.communicator;
    const Entered* operation = nullptr;
    for (const Member* each : s.waiting) {
      if (operation == nullptr) operation = each->at(s.least);
    }
    const Member& first = *s.behind.front();
    Finding f = finding(c, "stuck", first, operation);
    const std::string what =
        operation != nullptr ? ", " + operation_text(*operation) : std::string();
    f.expected = fmt::format("operation {}{}, on every member", s.least, what);
    f.seen = fmt::format("{} entered {}", members_text(s.behind),
                         counted(std::size_t(s.least), "operation"));
    f.message =
        fmt::format("on '{}' {} never entered operation {}{}; {} {} in it", c.label,
                    s.behind.size() == 1 ? member_text(first) : members_text(s.behind), s.least,
                    what, members_text(s.waiting), s.waiting.size() == 1 ? "waits" : "wait");
    if (const Stuck* other = waits_elsewhere(first, s); other != nullptr) {
      f.message += fmt::format(" (it waits itself, on '{}')", other->communicator->label);
    } else if (const Entered* last = first.at(s.least - 1); last != nullptr) {
      f.message += fmt::format(" (its last was {})", operation_text(*last));
    }
    nlohmann::json entered = nlohmann::json::object();
    for (const auto& [number, member] : c.members) entered[std::to_string(number)] = member.entered;
    f.detail = {{"entered", std::move(entered)}, {"communicator", c.id}};
    return f;
  }

  void where_it_ended(const Communicator& c) {
    std::int64_t least = INT64_MAX, most = 0;
    std::string all;
    for (const auto& [number, member] : c.members) {
      least = std::min(least, member.entered);
      most = std::max(most, member.entered);
      if (all.size() > 400) continue;
      const Entered* last = member.at(member.entered - 1);
      all +=
          fmt::format("{}{} had entered {}{}", all.empty() ? "" : "; ", member_text(member),
                      counted(std::size_t(std::max<std::int64_t>(0, member.entered)), "operation"),
                      last != nullptr ? ", last " + operation_text(*last) : std::string());
    }
    if (least == most || c.members.size() < 2) return;
    Finding note = finding(c, "last", c.members.begin()->second, nullptr);
    note.message = fmt::format("where it ended, on '{}': {}", c.label, all);
    note.seen = all;
    out_.notes.push_back(std::move(note));
  }

  // A Send without its Recv is no disagreement about an order, but worth a line where it hung.
  void transfers(const Communicator& c) {
    for (const auto& [number, member] : c.members) {
      if (member.p2p_called > member.p2p_launched) {
        Finding note = finding(c, "p2p", member, nullptr);
        note.message =
            fmt::format("on '{}' {} called {} Sends and Recvs, of which {} were launched", c.label,
                        member_text(member), member.p2p_called, member.p2p_launched);
        note.seen = fmt::format("{} of {} launched", member.p2p_launched, member.p2p_called);
        out_.notes.push_back(std::move(note));
      }
      for (const auto& [peer, sent] : member.sent) {
        const auto other = c.members.find(peer);
        if (other == c.members.end() || !complete(member) || !complete(other->second)) continue;
        const auto got = other->second.received.find(number);
        const std::int64_t received = got == other->second.received.end() ? 0 : got->second;
        if (received == sent) continue;
        Finding note = finding(c, "p2p", member, nullptr);
        note.message = fmt::format("on '{}' {} launched {} to member {}, which launched {} from it",
                                   c.label, member_text(member), counted(std::size_t(sent), "Send"),
                                   peer, counted(std::size_t(received), "Recv"));
        note.seen = fmt::format("{} sent, {} received", sent, received);
        out_.notes.push_back(std::move(note));
      }
    }
  }

  static bool complete(const Member& member) { return member.p2p_lines == member.p2p_launched; }

  const View& view_;
  OrderJudgement& out_;
  std::optional<std::int64_t> deadline_ns_;
  bool failed_ = false;
  std::vector<Stuck> stuck_;
};

}  // namespace

OrderJudgement judge_order(const View& view, const std::vector<Communicator>& communicators) {
  OrderJudgement out;
  OrderJudge judge(view, out);
  std::size_t alone = 0, gaps = 0;
  for (const Communicator& each : communicators) {
    if (each.doubtful) {
      out.why = fmt::format("'{}': two processes say that they are the same member", each.label);
      continue;
    }
    const bool part = each.ranks > static_cast<std::int64_t>(each.members.size());
    alone += part || each.members.size() < 2;
    gaps += std::any_of(each.members.begin(), each.members.end(), [](const auto& entry) {
      return static_cast<std::int64_t>(entry.second.ops.size()) < entry.second.entered;
    });
    judge.judge(each);
  }
  judge.conclude_hung();
  const auto add = [&](const std::string& text) {
    out.why += (out.why.empty() ? "" : "; ") + text;
  };
  if (alone > 0)
    add(fmt::format("of {} not every member was seen", counted(alone, "communicator")));
  if (gaps > 0)
    add(fmt::format("{} had more operations than lines: past them orders are compared by digest",
                    counted(gaps, "communicator")));
  return out;
}

}  // namespace warmgate::contract
