// What NCCL said of its communicators (source nccl): by communicator and member, because a process
// has another number in each, what was entered in which order, as far as it is known.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/contract/view.h"

namespace warmgate::contract {

struct Entered {
  std::string kind, type;  // AllReduce, float32
  std::int64_t elements = 0, bytes = 0, root = -1;
  std::size_t event = 0;
};

struct Member {
  std::int64_t number = 0, pid = 0;
  int rank = -1;             // of its process, where that said so; -1: not known
  std::vector<Entered> ops;  // from the first on, up to the first of which there is no line
  std::int64_t entered = 0;  // how many there were, lines or not
  Entered last;              // the newest one, where `entered` is more than the lines
  bool knows_last = false;
  std::map<std::int64_t, std::string> digests;     // of the first n collectives, by n
  std::int64_t last_ns = 0;                        // when it last entered anything here
  std::int64_t p2p_called = -1, p2p_launched = 0;  // -1: this NCCL does not say
  /// Launched Sends (to) and Recvs (from) by peer, and how many lines they came from.
  std::map<std::int64_t, std::int64_t> sent, received;
  std::int64_t p2p_lines = 0;
  bool ended = false;  // its process said bye: nothing is missing at the end

  /// The operation at `position`, if there is a line of it or it is the newest one.
  const Entered* at(std::int64_t position) const;
};

struct Communicator {
  std::string id, label;  // label: its name, and #2 … where several have it; the same in every run
  std::int64_t ranks = -1, nodes = -1, api = 0;  // -1: not said
  std::map<std::int64_t, Member> members;
  bool doubtful = false;  // two processes claim to be one member
  std::int64_t first_ns = 0;
};

/// Every communicator that may have more than one member, in the order in which they were made.
std::vector<Communicator> communicators_of(const View& view);

/// "AllReduce of 4.0 MiB".
std::string operation_text(const Entered& operation);
/// "member 1", with the rank of its process where that is known and another.
std::string member_text(const Member& member);

}  // namespace warmgate::contract
