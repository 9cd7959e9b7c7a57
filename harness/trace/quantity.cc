#include "harness/trace/quantity.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "harness/trace/vocabulary.h"

namespace warmgate::trace {
namespace {

std::string bytes_text(double bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (std::abs(bytes) >= 1024 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.2f} {}", bytes, kUnits[unit]);
}

}  // namespace

std::string grouped(std::int64_t value) {
  // Through unsigned, because the smallest integer has no positive counterpart.
  std::string digits = std::to_string(value < 0 ? 0 - static_cast<std::uint64_t>(value)
                                                : static_cast<std::uint64_t>(value));
  for (std::size_t at = digits.size(); at > 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return (value < 0 ? "-" : "") + digits;
}

std::string duration_text(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "?";
  if (seconds > 0 && seconds < 0.00995) return fmt::format("{:.2f} ms", seconds * 1e3);
  if (seconds < 0.9995) return fmt::format("{:.0f} ms", seconds * 1e3);
  if (seconds < 60) return fmt::format("{:.2f} s", seconds);
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  return fmt::format("{} min {} s", whole / 60, whole % 60);
}

std::string figure_text(std::string_view name, double value, std::string_view unit, bool exact) {
  if (!std::isfinite(value)) return "?";
  const FigureRule* rule = find_figure(name);
  const bool foreign = !rule && !unit.empty();
  if (rule && unit.empty()) unit = rule->unit;
  if (unit == "s") return duration_text(value);
  const bool whole = std::abs(value) < 9e15 && value == std::floor(value);
  if (unit == "bytes") {
    // Of many bytes nobody misses a part of one; such values come from logs in GiB.
    const std::string digits = whole || (std::abs(value) >= 1024 && std::abs(value) < 9e15)
                                   ? grouped(static_cast<std::int64_t>(std::llround(value)))
                                   : fmt::format("{:.1f}", value);
    if (std::abs(value) < 1024) return digits + " B";
    return exact ? fmt::format("{} ({})", digits, bytes_text(value)) : bytes_text(value);
  }
  if (name == "concurrency") return fmt::format("{:.2f}x", value);
  std::string text =
      whole ? grouped(static_cast<std::int64_t>(value)) : fmt::format("{:.4g}", value);
  return foreign ? text + " " + std::string(unit) : text;
}

std::string quantity_text(std::string_view name, double value, std::string_view unit) {
  const FigureRule* rule = find_figure(name);
  std::string text = figure_text(name, value, unit);
  if (!rule || rule->unit == "s" || rule->unit == "bytes" || name == "concurrency") return text;
  return text + " " + std::string(rule->unit);
}

}  // namespace warmgate::trace
