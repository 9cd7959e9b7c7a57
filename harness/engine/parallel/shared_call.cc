#include <fmt/format.h>

#include "harness/engine/parallel/shared_memory.h"

namespace warmgate::engine::shared {

const char* to_string(Kind kind) {
  switch (kind) {
    case Kind::kNone:
      return "nothing";
    case Kind::kAllReduce:
      return "all_reduce";
    case Kind::kAllGather:
      return "all_gather";
    case Kind::kBarrier:
      return "barrier";
    case Kind::kAllMin:
      return "all_min";
  }
  return "garbage";
}

std::uint64_t hash_of(std::string_view text) {
  std::uint64_t h = 0xcbf29ce484222325u;  // FNV-1a: the same in every process
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return h;
}

std::string text_of(const Call& call) {
  std::string text = to_string(call.kind);
  if (call.kind != Kind::kBarrier) text += fmt::format(" of {} bytes", call.bytes);
  return text + fmt::format(" on '{}' (sequence number {})", call.communicator, call.seq);
}

bool same_operation(const Call& a, const Call& b) {
  return a.kind == b.kind && a.bytes == b.bytes && a.seq == b.seq && a.piece == b.piece &&
         a.communicator_hash == b.communicator_hash;
}

}  // namespace warmgate::engine::shared
