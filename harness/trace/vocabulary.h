// The words of the trace: phases, event kinds with their required fields, and figures.
#pragma once

#include <string_view>
#include <vector>

namespace warmgate::trace {

enum class FieldType { kString, kNumber, kBool, kArray, kAny };

struct FieldRule {
  std::string_view name;
  FieldType type;
};

struct EventKind {
  std::string_view ev;
  std::vector<FieldRule> required;
  std::string_view meaning;
};

/// Every kind of the protocol, version 1, and the harness's own (process_end, leftover, deadline,
/// output).
const std::vector<EventKind>& event_kinds();
const EventKind* find_kind(std::string_view ev);

/// bootstrap load profile kv warmup capture ready serve shutdown, in that order.
const std::vector<std::string_view>& phases();

enum class Direction { kNone, kLower, kHigher };  // which way is better

/// A figure has one name everywhere: events (`counter`), expect, gate, plan, reports.
struct FigureRule {
  std::string_view name;
  std::string_view unit;
  Direction better;
  std::string_view meaning;
};
const std::vector<FigureRule>& figures();
const FigureRule* find_figure(std::string_view name);

}  // namespace warmgate::trace
