// Boost.Beast brings the inflater that it needs for WebSockets; zlib itself is not linked.
#include "harness/target/spans/gunzip.h"

#include <boost/beast/zlib/inflate_stream.hpp>
#include <boost/crc.hpp>
#include <cstdint>

namespace warmgate::target {
namespace {

namespace zlib = boost::beast::zlib;

unsigned byte_at(std::string_view bytes, std::size_t i) {
  return static_cast<unsigned char>(bytes[i]);
}

std::uint32_t word_at(std::string_view bytes, std::size_t i) {
  return byte_at(bytes, i) | byte_at(bytes, i + 1) << 8 | byte_at(bytes, i + 2) << 16 |
         byte_at(bytes, i + 3) << 24;
}

// Where the deflated bytes begin (RFC 1952, 2.3); npos if this is no member that has them.
std::size_t header_size(std::string_view bytes) {
  constexpr unsigned kCheck = 2, kExtra = 4, kName = 8, kComment = 16, kReserved = 0xe0;
  constexpr std::size_t kNone = std::string_view::npos;
  if (bytes.size() < 10 || byte_at(bytes, 0) != 0x1f || byte_at(bytes, 1) != 0x8b) return kNone;
  const unsigned flags = byte_at(bytes, 3);
  if (byte_at(bytes, 2) != 8 || (flags & kReserved) != 0) return kNone;
  std::size_t at = 10;
  if ((flags & kExtra) != 0) {
    if (bytes.size() < at + 2) return kNone;
    at += 2 + (byte_at(bytes, at) | byte_at(bytes, at + 1) << 8);
  }
  for (const unsigned text : {kName, kComment}) {
    if ((flags & text) == 0) continue;
    at = at < bytes.size() ? bytes.find('\0', at) : kNone;
    if (at == kNone) return kNone;
    ++at;
  }
  if ((flags & kCheck) != 0) at += 2;
  return at + 8 <= bytes.size() ? at : kNone;  // checksum and length stand behind
}

}  // namespace

Gunzip gunzip(std::string_view bytes, std::size_t most, std::string& out) {
  const std::size_t begin = header_size(bytes);
  if (begin == std::string_view::npos) return Gunzip::kBroken;
  zlib::inflate_stream inflater;
  zlib::z_params state;
  state.next_in = bytes.data() + begin;
  state.avail_in = bytes.size() - begin;
  out.clear();
  char piece[16 * 1024];
  for (;;) {
    state.next_out = piece;
    state.avail_out = sizeof piece;
    boost::system::error_code ec;
    inflater.write(state, zlib::Flush::sync, ec);
    const std::size_t made = sizeof piece - state.avail_out;
    if (made > most - out.size()) return Gunzip::kTooLarge;
    out.append(piece, made);
    if (ec == zlib::error::end_of_stream) break;
    if (ec) return Gunzip::kBroken;
    if (made == 0 && state.avail_in == 0) return Gunzip::kBroken;  // it ends in the middle
  }
  const std::string_view tail = bytes.substr(bytes.size() - state.avail_in);
  if (tail.size() != 8) return Gunzip::kBroken;
  boost::crc_32_type sum;
  sum.process_bytes(out.data(), out.size());
  const bool whole = word_at(tail, 0) == sum.checksum() &&
                     word_at(tail, 4) == static_cast<std::uint32_t>(out.size());
  return whole ? Gunzip::kDone : Gunzip::kBroken;
}

}  // namespace warmgate::target
