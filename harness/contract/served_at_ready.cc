#include "harness/contract/served_at_ready.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

namespace warmgate::contract {
namespace {

constexpr const char* kServedAtReady = "ready-honest";

// The same request would have been served a little later: nobody was there to take it.
bool came_too_early(const trace::Event& request) {
  if (request.flag("ok")) return false;
  const std::string_view end = text(request, "end");
  const std::int64_t status = request.num("status");
  return end == "refused" || end == "no_answer" || status == 502 || status == 503 || status == 504;
}

Finding base(std::string key, int rank) {
  Finding f;
  f.contract = kServedAtReady;
  f.key = std::move(key);
  f.phase = "serve";
  f.rank = rank;
  return f;
}

double seconds(std::int64_t from, std::int64_t to) {
  return static_cast<double>(elapsed_ns(from, to)) / 1e9;
}

struct Answering {
  std::optional<std::size_t> health, too_early, served;
  std::map<std::int64_t, std::size_t> alone;  // ordinal → request that went alone and was served
};

std::optional<Finding> refused(const View& view, int rank, const Answering& member) {
  if (!member.health || !member.too_early) return std::nullopt;
  const trace::Event& health = view.event(*member.health);
  const trace::Event& request = view.event(*member.too_early);
  Finding f = base("health", rank);
  f.expected = "a request that is sent after health said ready is served";
  f.seen = request.num("status") != 0 ? fmt::format("HTTP {}", request.num("status"))
                                      : std::string(text(request, "end"));
  f.message = fmt::format("health said ready after {:.2f} s, and the first request got {}; ",
                          seconds(view.event(0).t_ns, health.t_ns), f.seen);
  f.message += member.served ? fmt::format("one was served {:.2f} s later",
                                           seconds(health.t_ns, view.event(*member.served).t_ns))
                             : std::string("none was served at all");
  f.events = {*member.health, *member.too_early};
  if (member.served) f.events.push_back(*member.served);
  return f;
}

std::optional<Finding> slow_second(const View& view, int rank, const Answering& member) {
  const auto second = member.alone.find(2), third = member.alone.find(3);
  if (second == member.alone.end() || third == member.alone.end()) return std::nullopt;
  const trace::Event& a = view.event(second->second);
  const trace::Event& b = view.event(third->second);
  if (text(a, "class") != text(b, "class")) return std::nullopt;
  const double x = a.real("ttft_ms"), y = b.real("ttft_ms");
  if (x <= kSecondFactor * y || x - y <= kSecondMore_ms) return std::nullopt;
  Finding f = base("second-request", rank);
  f.expected = "the second request as good as the third";
  f.seen = fmt::format("{:.0f} ms to the first token, then {:.0f} ms", x, y);
  f.message = fmt::format("it was not warm when it said ready: {}", f.seen);
  f.events = {second->second, third->second};
  return f;
}

}  // namespace

std::vector<Finding> served_at_ready(const View& view) {
  std::map<int, Answering> members;
  const int unnamed = view.trace().world <= 1 ? 0 : -1;
  for (std::size_t i = 0; i < view.size(); ++i) {
    const trace::Event& e = view.event(i);
    Answering& member = members[rank_of(e, unnamed)];
    if (e.ev == "ready" && text(e, "clock") == "health") {
      if (!member.health) member.health = i;
    } else if (e.ev == "request" && member.health) {
      if (came_too_early(e) && !member.too_early && !member.served) member.too_early = i;
      if (!e.flag("ok")) continue;
      if (!member.served) member.served = i;
      if (e.flag("alone") && has_number(e, "ttft_ms")) member.alone.emplace(e.num("ordinal"), i);
    }
  }
  std::vector<Finding> out;
  for (const auto& [rank, member] : members) {
    for (auto judge : {refused, slow_second}) {
      if (auto finding = judge(view, rank, member)) out.push_back(std::move(*finding));
    }
  }
  return out;
}

}  // namespace warmgate::contract
