#include "harness/contract/communicators.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/contract/probe_view.h"

namespace warmgate::contract {

namespace {

// A trace that claims more is a trace that somebody wrote.
constexpr std::int64_t kMostOperations = std::int64_t{1} << 62;
constexpr std::size_t kMostCommunicators = 4096, kMostMembers = 4096, kMostPeers = 4096;

Entered entered_of(const trace::Event& e, std::size_t i) {
  Entered out;
  out.kind = e.str("kind");
  out.type = e.str("type");
  out.elements = e.num("elements", -1);
  out.bytes = e.num("bytes");
  out.root = out.kind == "Broadcast" || out.kind == "Reduce" ? e.num("root", -1) : -1;
  out.event = i;
  return out;
}

void take_state(Member& member, const trace::Event& e, std::size_t i) {
  const std::int64_t entered = e.num("entered");
  if (entered > 0 && !text(e, "digest").empty()) member.digests.emplace(entered, e.str("digest"));
  if (entered > member.entered) {
    member.entered = entered;
    member.knows_last = e.flag("last");
  } else if (entered == member.entered) {
    member.knows_last |= e.flag("last");
  }
  if (e.flag("last")) {
    // Two records take turns; the one with more steps is the newer one.
    if (entered >= member.entered && entered > 0) member.last = entered_of(e, i);
    member.p2p_launched = std::max(member.p2p_launched, e.num("p2p_launched"));
    member.p2p_called = std::max(member.p2p_called, e.num("p2p_called", -1));
  }
  member.last_ns = std::max(member.last_ns, e.t_ns);
}

void take_line(Communicator& communicator, Member& member, const trace::Event& e, std::size_t i) {
  if (e.ev == "communicator") {
    communicator.ranks = std::max(communicator.ranks, e.num("ranks", -1));
    communicator.nodes = std::max(communicator.nodes, e.num("nodes", -1));
    communicator.api = std::max(communicator.api, e.num("api"));
  } else if (e.ev == "collective") {
    const std::int64_t op = std::min(e.num("op", -1), kMostOperations);
    if (op == static_cast<std::int64_t>(member.ops.size())) member.ops.push_back(entered_of(e, i));
    if (op >= member.entered) {
      member.entered = op + 1;
      member.last = entered_of(e, i);
      member.knows_last = true;
    }
    member.last_ns = std::max(member.last_ns, e.t_ns);
  } else if (e.ev == "communicator_state") {
    take_state(member, e, i);
  } else if (e.ev == "p2p") {
    auto& side = text(e, "kind") == "Send" ? member.sent : member.received;
    if (side.size() < kMostPeers) ++side[e.num("peer", -1)];
    ++member.p2p_lines;
    member.p2p_launched = std::max(member.p2p_launched, std::min(e.num("op"), kMostOperations) + 1);
    member.last_ns = std::max(member.last_ns, e.t_ns);
  }
}

bool of_a_communicator(const trace::Event& e) {
  return e.src == "nccl" && !text(e, "communicator").empty() && e.num("member", -1) >= 0;
}

// The hash of an identity is another one in each run; a key of a finding has to match tomorrow.
void name_them(std::vector<Communicator>& all) {
  std::map<std::string, int> so_far;
  for (Communicator& each : all) {
    std::string name = each.id.substr(0, each.id.rfind('@'));
    if (name.empty()) name = "communicator";
    const int n = ++so_far[name];
    each.label = n == 1 ? name : fmt::format("{}#{}", name, n);
  }
}

}  // namespace

const Entered* Member::at(std::int64_t position) const {
  if (position >= 0 && position < static_cast<std::int64_t>(ops.size()))
    return &ops[static_cast<std::size_t>(position)];
  return knows_last && position == entered - 1 ? &last : nullptr;
}

std::vector<Communicator> communicators_of(const View& view) {
  std::map<std::string, Communicator, std::less<>> by_id;
  std::map<std::int64_t, int> rank_of_pid;
  std::map<std::int64_t, bool> ended;
  for (std::size_t i = 0; i < view.size(); ++i) {
    const trace::Event& e = view.event(i);
    if (e.ev == "hello" && e.rank && *e.rank >= 0) rank_of_pid.emplace(e.num("pid", -1), *e.rank);
    if (e.ev == "bye" && e.src == "nccl") ended[e.num("pid", -1)] = true;
    if (!of_a_communicator(e)) continue;
    const std::string id = e.str("communicator");
    if (by_id.count(id) == 0 && by_id.size() >= kMostCommunicators) continue;
    Communicator& communicator = by_id[id];
    if (communicator.id.empty()) {
      communicator.id = id;
      communicator.first_ns = e.t_ns;
    }
    const std::int64_t number = e.num("member");
    if (communicator.members.count(number) == 0 && communicator.members.size() >= kMostMembers)
      continue;
    Member& member = communicator.members[number];
    const std::int64_t pid = e.num("pid", -1);
    if (member.pid == 0) member.pid = pid;
    communicator.doubtful |= member.pid != pid;
    member.number = number;
    take_line(communicator, member, e, i);
  }
  std::vector<Communicator> out;
  for (auto& [id, communicator] : by_id) {
    if (communicator.ranks == 1) continue;
    for (auto& [number, member] : communicator.members) {
      const auto rank = rank_of_pid.find(member.pid);
      if (rank != rank_of_pid.end()) member.rank = rank->second;
      member.ended = ended.count(member.pid) != 0;
    }
    out.push_back(std::move(communicator));
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.first_ns < b.first_ns; });
  name_them(out);
  return out;
}

std::string operation_text(const Entered& operation) {
  return fmt::format("{} of {}", operation.kind.empty() ? "an operation" : operation.kind,
                     rounded_bytes(operation.bytes));
}

std::string member_text(const Member& member) {
  if (member.rank < 0 || member.rank == member.number)
    return fmt::format("member {}", member.number);
  return fmt::format("member {} (rank {})", member.number, member.rank);
}

}  // namespace warmgate::contract
