// Integers that fault instead of wrapping, trapping or reading past the end: what kernel bodies are
// made of on the host. A fault carries the operands and where in the body it happened.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <source_location>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace warmgate::jit {

/// Kinds: those of HostCheck::fault (jit.h).
class KernelFault : public std::runtime_error {
 public:
  KernelFault(std::string kind_of_fault, const std::string& operands,
              const std::source_location& where);
  std::string kind;
  std::source_location location;
};

/// Steps that loops may still take in this thread of a launch; every loop of a body advances with
/// an assignment operator, so a body that never ends runs out of them. Set by run_on_host().
inline thread_local std::int64_t steps_left = 0;

/// Out of line, so that the operators stay small.
[[noreturn]] void fault(const char* kind, std::int64_t a, const char* op, std::int64_t b,
                        const std::source_location& where);

template <std::signed_integral T>
class Checked;

/// The right operand of an operator, with the place of the call: operators take no default
/// arguments, but the conversion to their parameter does.
template <std::signed_integral T>
struct Located {
  T value;
  std::source_location where;
  Located(T v, std::source_location w = std::source_location::current()) : value(v), where(w) {}
  Located(Checked<T> v, std::source_location w = std::source_location::current())
      : value(v.raw()), where(w) {}
};

template <std::signed_integral T>
class Checked {
 public:
  Checked(T value) : value_(value) {}  // implicit, as literals are in the bodies
  /// Widening or narrowing; a value that does not fit is an overflow.
  template <std::signed_integral U>
  requires(!std::same_as<T, U>) explicit Checked(
      Checked<U> other, std::source_location w = std::source_location::current())
      : value_(static_cast<T>(other.raw())) {
    if (static_cast<U>(value_) != other.raw())
      fault("overflow", other.raw(), "narrowed to", value_, w);
  }
  T raw() const { return value_; }

  friend Checked operator+(Checked a, Located<T> b) {
    T out;
    if (__builtin_add_overflow(a.value_, b.value, &out))
      fault("overflow", a.value_, "+", b.value, b.where);
    return out;
  }
  friend Checked operator-(Checked a, Located<T> b) {
    T out;
    if (__builtin_sub_overflow(a.value_, b.value, &out))
      fault("overflow", a.value_, "-", b.value, b.where);
    return out;
  }
  friend Checked operator*(Checked a, Located<T> b) {
    T out;
    if (__builtin_mul_overflow(a.value_, b.value, &out))
      fault("overflow", a.value_, "*", b.value, b.where);
    return out;
  }
  friend Checked operator/(Checked a, Located<T> b) {
    check_divisor(a.value_, "/", b);
    return a.value_ / b.value;
  }
  friend Checked operator%(Checked a, Located<T> b) {
    check_divisor(a.value_, "%", b);
    return a.value_ % b.value;
  }
  friend Checked operator<<(Checked a, Located<T> b) {
    check_shift(a.value_, "<<", b);
    if (a.value_ < 0 || a.value_ > (std::numeric_limits<T>::max() >> b.value)) {
      fault("overflow", a.value_, "<<", b.value, b.where);
    }
    return static_cast<T>(a.value_ << b.value);
  }
  friend Checked operator>>(Checked a, Located<T> b) {
    check_shift(a.value_, ">>", b);
    return static_cast<T>(a.value_ >> b.value);
  }
  friend Checked operator&(Checked a, Located<T> b) { return static_cast<T>(a.value_ & b.value); }
  friend Checked operator|(Checked a, Located<T> b) { return static_cast<T>(a.value_ | b.value); }
  Checked& operator+=(Located<T> b) {
    if (--steps_left < 0) fault("endless", value_, "+=", b.value, b.where);
    return *this = *this + b;
  }

  friend bool operator==(Checked a, Checked b) { return a.value_ == b.value_; }
  friend auto operator<=>(Checked a, Checked b) { return a.value_ <=> b.value_; }

 private:
  static void check_divisor(T a, const char* op, const Located<T>& b) {
    if (b.value == 0) fault("division_by_zero", a, op, b.value, b.where);
    if (b.value == -1 && a == std::numeric_limits<T>::min())
      fault("overflow", a, op, b.value, b.where);
  }
  static void check_shift(T a, const char* op, const Located<T>& b) {
    if (b.value < 0 || b.value > std::numeric_limits<T>::digits)
      fault("bad_shift", a, op, b.value, b.where);
  }
  T value_;
};

using Int = Checked<std::int32_t>;
using Long = Checked<std::int64_t>;

/// An index into memory: Int or Long alike.
struct Index {
  std::int64_t value;
  std::source_location where;
  Index(int v, std::source_location w = std::source_location::current()) : value(v), where(w) {}
  Index(Int v, std::source_location w = std::source_location::current())
      : value(v.raw()), where(w) {}
  Index(Long v, std::source_location w = std::source_location::current())
      : value(v.raw()), where(w) {}
};

/// Device memory as a body sees it: int32 elements with a length. `phase` is how many elements the
/// first one lies past a 16-byte boundary (0..3). T is std::int32_t or const std::int32_t.
template <typename T>
class Pointer {
 public:
  Pointer(T* data, std::int64_t size, int phase = 0) : data_(data), size_(size), phase_(phase) {}
  /// Output memory: assigned from Int, never read by a body.
  class Element {
   public:
    explicit Element(T* at) : at_(at) {}
    void operator=(Int value) const { *at_ = value.raw(); }

   private:
    T* at_;
  };
  auto operator[](Index i) const {
    if (i.value < 0 || i.value >= size_)
      fault("out_of_bounds", i.value, "index into", size_, i.where);
    if constexpr (std::is_const_v<T>) {
      return Int(data_[i.value]);
    } else {
      return Element(data_ + i.value);
    }
  }
  Pointer operator+(Index by) const {
    if (by.value < 0 || by.value > size_)
      fault("out_of_bounds", by.value, "offset into", size_, by.where);
    return Pointer(data_ + by.value, size_ - by.value, static_cast<int>((phase_ + by.value) & 3));
  }
  void require_aligned(const std::source_location& where) const {
    if (phase_ != 0) fault("misaligned", phase_, "elements past an alignment of", 4, where);
  }

 private:
  T* data_;
  std::int64_t size_;
  int phase_;
};

}  // namespace warmgate::jit
