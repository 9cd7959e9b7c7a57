#include "harness/probe/nccl/recorder.h"

#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace warmgate::probe::nccl {

namespace {

constexpr std::string_view kSource = "nccl";

template <std::size_t N>
void copy_printable(std::string_view text, char (&out)[N]) {
  const std::size_t n = std::min(text.size(), N - 1);
  for (std::size_t i = 0; i < n; ++i) {
    const char c = text[i];
    out[i] = c >= ' ' && c < 0x7f && c != '"' && c != '\\' ? c : '?';
  }
  out[n] = '\0';
}

void mix(std::uint64_t& hash, const void* data, std::size_t bytes) {  // FNV-1a
  const auto* at = static_cast<const unsigned char*>(data);
  for (std::size_t i = 0; i < bytes; ++i) hash = (hash ^ at[i]) * 0x100000001b3u;
}

bool has_root(std::string_view kind) {
  return kind == "Broadcast" || kind == "Reduce" || kind == "Gather" || kind == "Scatter";
}

// What it is and how large. What only moves data may be named in another type by another rank, as
// long as the bytes are as many.
std::uint64_t shape_of(const Communicator& c) {
  const std::string_view kind = c.kind;
  const bool moves = kind == "AllGather" || kind == "Broadcast";
  const int root = has_root(kind) ? c.root : 0;
  const std::string_view type = moves ? "" : c.type;
  const std::uint64_t size = moves ? c.bytes : c.elements;
  std::uint64_t out = 0xcbf29ce484222325u;
  mix(out, kind.data(), kind.size());
  mix(out, type.data(), type.size());
  mix(out, &size, sizeof size);
  mix(out, &root, sizeof root);
  return out;
}

std::size_t place_of(std::string_view kind) {
  static constexpr std::string_view kinds[] = {"AllReduce", "AllGather",     "Broadcast",
                                               "Reduce",    "ReduceScatter", "AlltoAll",
                                               "Gather",    "Scatter"};
  for (std::size_t i = 0; i < std::size(kinds); ++i) {
    if (kinds[i] == kind) return i;
  }
  return std::size(kinds);
}

bool is_power_of_two(std::uint64_t n) { return n != 0 && (n & (n - 1)) == 0; }

trace::Line line(std::string_view ev, const Communicator& c) {
  trace::Line out = Report::line(ev, kSource);
  out.str("communicator", c.id).num("member", c.member);
  return out;
}

}  // namespace

std::string_view bounded(const char* text, std::size_t most) {
  return text == nullptr ? std::string_view() : std::string_view(text, ::strnlen(text, most));
}

std::string_view plain_type(std::string_view datatype, char (&out)[16]) {
  if (datatype.substr(0, 4) == "nccl") datatype.remove_prefix(4);
  copy_printable(datatype, out);
  for (char* c = out; *c != '\0'; ++c) {
    if (*c >= 'A' && *c <= 'Z') *c = static_cast<char>(*c - 'A' + 'a');
  }
  return out;
}

std::uint64_t element_bytes(std::string_view type) {
  const auto ends = [&](std::string_view with) {
    return type.size() >= with.size() && type.substr(type.size() - with.size()) == with;
  };
  if (ends("64")) return 8;
  if (ends("32")) return 4;
  return ends("16") ? 2 : 1;
}

bool Recorder::open_from_environment() {
  if (!report_.open_from_environment()) return false;
  last_.open(::secure_getenv("WARMGATE_EVENTS_DIR"));
  return true;
}

Communicator* Recorder::open(int api) {
  const std::lock_guard lock(mutex_);
  if (used_ >= std::size(communicators_)) {
    ++left_out_;
    return nullptr;
  }
  Communicator& made = communicators_[used_];
  made.index = used_++;
  made.api = api;
  std::fill(std::begin(made.seq_of_kind), std::end(made.seq_of_kind), -1);
  return &made;
}

void Recorder::identify(Communicator& c, const char* name, std::uint64_t hash, int member,
                        int ranks, int nodes) {
  const std::lock_guard lock(mutex_);
  if (c.known) return;
  c.known = true;
  copy_printable(bounded(name, sizeof c.name - 1), c.name);
  std::snprintf(c.id, sizeof c.id, "%s@%016" PRIx64, c.name, hash);
  c.hash = hash;
  c.member = member;
  c.ranks = ranks;
  c.nodes = nodes;
  c.t_ns = trace::now_ns();
  trace::Line out = line("communicator", c);
  out.str("name", c.name).num("api", c.api).str("status", "made");
  if (ranks >= 0) out.num("ranks", ranks);
  if (nodes >= 0) out.num("nodes", nodes);
  report_.send("communicator", out, c.t_ns);
  keep(c);
}

void Recorder::enter(Communicator& c, const Operation& operation) {
  const std::lock_guard lock(mutex_);
  const std::size_t place = place_of(operation.kind);
  if (operation.seq >= 0 && place < std::size(c.seq_of_kind)) {
    // Before v5 nothing tells a replay of a captured collective from a call, except that NCCL does
    // not count it: the number comes again.
    if (c.seq_of_kind[place] == operation.seq) return;
    c.seq_of_kind[place] = operation.seq;
  }
  copy_printable(operation.kind, c.kind);
  plain_type(operation.datatype, c.type);
  c.elements = operation.elements;
  c.bytes = operation.elements * element_bytes(c.type);
  c.root = operation.root;
  c.digest = (c.digest << 5 | c.digest >> 59) ^ shape_of(c);  // where it is in the order counts
  c.captured = operation.captured;
  c.t_ns = trace::now_ns();
  const std::uint64_t op = c.entered++;
  keep(c);
  if (op < kLinesEach) {
    trace::Line out = line("collective", c);
    out.num("op", static_cast<std::int64_t>(op))
        .num("seq", operation.seq >= 0 ? operation.seq : static_cast<std::int64_t>(op))
        .str("kind", c.kind)
        .num("elements", static_cast<std::int64_t>(c.elements))
        .str("type", c.type)
        .num("bytes", static_cast<std::int64_t>(c.bytes));
    if (has_root(c.kind)) out.num("root", c.root);
    if (!operation.algorithm.empty()) out.str("algorithm", operation.algorithm);
    if (!operation.protocol.empty()) out.str("protocol", operation.protocol);
    if (c.captured) out.flag("in_capture", true);
    report_.send("collective", out, c.t_ns);
  } else if (is_power_of_two(c.entered)) {
    trace::Line out = line("communicator_state", c);
    char digest[17];
    std::snprintf(digest, sizeof digest, "%016" PRIx64, c.digest);
    out.num("entered", static_cast<std::int64_t>(c.entered)).str("digest", digest);
    report_.send("communicator_state", out, c.t_ns);
  }
}

void Recorder::launch(Communicator& c) {
  const std::lock_guard lock(mutex_);
  ++c.launched;
  keep(c);
}

void Recorder::call_transfer(Communicator& c) {
  const std::lock_guard lock(mutex_);
  ++c.p2p_called;
  keep(c);
}

void Recorder::transfer(Communicator& c, const Transfer& t) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t op = c.p2p_launched++;
  keep(c);
  if (op >= kLinesEach) return;
  char kind[24], type[16];
  copy_printable(t.kind, kind);
  plain_type(t.datatype, type);
  report_.send("p2p",
               line("p2p", c)
                   .num("op", static_cast<std::int64_t>(op))
                   .str("kind", kind)
                   .num("peer", t.peer)
                   .num("elements", static_cast<std::int64_t>(t.elements))
                   .str("type", type)
                   .num("bytes", static_cast<std::int64_t>(t.elements * element_bytes(type))));
}

void Recorder::close(Communicator& c) {
  const std::lock_guard lock(mutex_);
  if (c.closed) return;
  c.closed = true;
  if (!c.known) return;
  report_.send("communicator", line("communicator", c).str("name", c.name).str("status", "gone"));
}

Communicator* Recorder::find(void* context) {
  const auto at = reinterpret_cast<std::uintptr_t>(context);
  const auto first = reinterpret_cast<std::uintptr_t>(&communicators_[0]);
  if (at < first || at >= first + sizeof communicators_ || (at - first) % sizeof(Communicator) != 0)
    return nullptr;
  Communicator* found = &communicators_[(at - first) / sizeof(Communicator)];
  const std::lock_guard lock(mutex_);
  return found->index < used_ && found->api != 0 && !found->closed ? found : nullptr;
}

void Recorder::totals() {
  const std::lock_guard lock(mutex_);
  if (left_out_ == 0) return;
  report_.send("counter", Report::line("counter", kSource)
                              .str("name", "nccl_communicators_left_out")
                              .real("value", static_cast<double>(left_out_)));
}

// As a line of the protocol, formatted by libc into a buffer of our own: this runs once an
// operation.
void Recorder::keep(const Communicator& c) {
  if (!c.known || report_.off()) return;
  char text[LastStates::kRecordBytes];
  const int n = std::snprintf(
      text, sizeof text,
      "{\"ev\":\"communicator_state\",\"src\":\"nccl\",\"pid\":%d,\"communicator\":\"%s\","
      "\"member\":%d,\"entered\":%" PRIu64 ",\"launched\":%" PRIu64 ",\"p2p_called\":%" PRIu64
      ",\"p2p_launched\":%" PRIu64 ",\"digest\":\"%016" PRIx64
      "\",\"kind\":\"%s\",\"elements\":%" PRIu64 ",\"type\":\"%s\",\"bytes\":%" PRIu64
      ",\"root\":%d,\"in_capture\":%s,\"last\":true,\"t\":%" PRId64 ",\"rank\":null}",
      static_cast<int>(::getpid()), c.id, c.member, c.entered, c.launched, c.p2p_called,
      c.p2p_launched, c.digest, c.kind, c.elements, c.type, c.bytes, c.root,
      c.captured ? "true" : "false", c.t_ns);
  if (n > 0) last_.write(c.index, {text, static_cast<std::size_t>(n)});
}

Recorder::Busy::Busy(Recorder& recorder) : recorder_(recorder), since_(trace::now_ns()) {}

Recorder::Busy::~Busy() {
  recorder_.own_ns_.fetch_add(trace::now_ns() - since_, std::memory_order_relaxed);
  recorder_.calls_.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace warmgate::probe::nccl
