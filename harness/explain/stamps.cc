#include "harness/explain/stamps.h"

namespace warmgate::explain::internal {
namespace {

// Walks over a text; once something did not fit, ok stays false.
struct Walk {
  std::string_view text;
  std::size_t at = 0;
  bool ok = true;

  char peek() const { return at < text.size() ? text[at] : '\0'; }
  int number(int digits) {
    int value = 0;
    for (int i = 0; i < digits; ++i, ++at) {
      if (at >= text.size() || !is_digit(text[at])) return ok = false, 0;
      value = value * 10 + (text[at] - '0');
    }
    return value;
  }
  // 1 to `most` digits.
  int some(int most) {
    int value = 0, count = 0;
    for (; count < most && is_digit(peek()); ++count, ++at) value = value * 10 + (text[at] - '0');
    if (count == 0) ok = false;
    return value;
  }
  void expect(char c) {
    if (peek() == c && at < text.size()) {
      ++at;
    } else {
      ok = false;
    }
  }
  double fraction() {
    if ((peek() != '.' && peek() != ',') || at + 1 >= text.size() || !is_digit(text[at + 1]))
      return 0;
    ++at;
    double value = 0, scale = 0.1;
    for (; is_digit(peek()); ++at, scale *= 0.1) value += scale * (text[at] - '0');
    return value;
  }
  double clock() {
    const int hours = number(2);
    expect(':');
    const int minutes = number(2);
    expect(':');
    const int secs = number(2);
    if (hours > 24 || minutes > 59 || secs > 60) ok = false;
    const double whole = hours * 3600.0 + minutes * 60.0 + secs;
    return ok ? whole + fraction() : 0;
  }
  std::size_t taken() const { return ok ? at : 0; }
};

bool calendar(int month, int day) { return month >= 1 && month <= 12 && day >= 1 && day <= 31; }

double zone(Walk& walk) {
  if (walk.peek() == 'Z') return ++walk.at, 0;
  const char sign = walk.peek();
  if (sign != '+' && sign != '-') return 0;
  Walk ahead{walk.text, walk.at + 1};
  const int hours = ahead.number(2);
  if (ahead.peek() == ':') ++ahead.at;
  const int minutes = ahead.number(2);
  if (!ahead.ok) return 0;
  walk.at = ahead.at;
  return (sign == '+' ? -1 : 1) * (hours * 3600.0 + minutes * 60.0);
}

}  // namespace

// Howard Hinnant's days_from_civil.
double date_seconds(int year, int month, int day) {
  year -= month <= 2;
  const int era = (year >= 0 ? year : year - 399) / 400;
  const int yoe = year - era * 400;
  const int doy = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  const int doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
  return (era * 146097.0 + doe - 719468.0) * 86400.0;
}

std::size_t iso_stamp(std::string_view text, double& seconds) {
  Walk walk{text};
  const int year = walk.number(4);
  walk.expect('-');
  const int month = walk.number(2);
  walk.expect('-');
  const int day = walk.number(2);
  if (!walk.ok || !calendar(month, day)) return 0;
  if (walk.peek() != 'T' && walk.peek() != ' ') return 0;
  ++walk.at;
  const double clock = walk.clock();
  if (!walk.ok) return 0;
  seconds = date_seconds(year, month, day) + clock + zone(walk);
  return walk.taken();
}

std::size_t month_day_stamp(std::string_view text, double& seconds) {
  Walk walk{text};
  const int month = walk.number(2);
  walk.expect('-');
  const int day = walk.number(2);
  walk.expect(' ');
  const double clock = walk.clock();
  if (!walk.ok || !calendar(month, day)) return 0;
  seconds = date_seconds(2000, month, day) + clock;
  return walk.taken();
}

std::size_t slash_stamp(std::string_view text, double& seconds) {
  Walk walk{text};
  const int month = walk.number(2);
  walk.expect('/');
  const int day = walk.number(2);
  walk.expect('/');
  const int year = walk.number(4);
  walk.expect('-');
  const double clock = walk.clock();
  if (!walk.ok || !calendar(month, day)) return 0;
  seconds = date_seconds(year, month, day) + clock;
  return walk.taken();
}

std::size_t clock_stamp(std::string_view text, double& seconds) {
  Walk walk{text};
  const double clock = walk.clock();
  if (!walk.ok) return 0;
  seconds = clock;
  return walk.taken();
}

std::size_t since_start_stamp(std::string_view text, double& seconds) {
  Walk walk{text};
  const int minutes = walk.some(7);
  walk.expect('.');
  const int secs = walk.number(2);
  walk.expect('.');
  const int millis = walk.number(3);
  walk.expect('.');
  const int micros = walk.number(3);
  if (!walk.ok || secs > 59) return 0;
  seconds = minutes * 60.0 + secs + millis * 1e-3 + micros * 1e-6;
  return walk.taken();
}

std::size_t glog_stamp(std::string_view text, double& seconds) {
  Walk walk{text};
  // c10d leaves out the month's leading zero.
  const bool short_month = text.size() > 3 && text[3] == ' ';
  const int month = walk.number(short_month ? 1 : 2), day = walk.number(2);
  walk.expect(' ');
  const double clock = walk.clock();
  if (!walk.ok || !calendar(month, day)) return 0;
  seconds = date_seconds(2000, month, day) + clock;
  return walk.taken();
}

std::size_t syslog_stamp(std::string_view text, double& seconds) {
  // A word of letters of any alphabet, at most 24 bytes, perhaps with a full stop.
  std::size_t at = 0;
  while (at < text.size() && at < 24) {
    const unsigned char c = static_cast<unsigned char>(text[at]);
    if (!((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c >= 0x80 || c == '.')) break;
    ++at;
  }
  if (at < 3 || at >= text.size() || text[at] != ' ') return 0;
  while (at < text.size() && text[at] == ' ') ++at;
  Walk walk{text, at};
  const int day = walk.some(2);
  walk.expect(' ');
  const double clock = walk.clock();
  if (!walk.ok || day < 1 || day > 31) return 0;
  seconds = day * 86400.0 + clock;
  return walk.taken();
}

}  // namespace warmgate::explain::internal
