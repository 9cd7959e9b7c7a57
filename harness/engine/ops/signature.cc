#include "harness/engine/ops/signature.h"

namespace warmgate::engine {

std::string SignatureKey::text() const {
  std::string out;
  for (int i = 0; i < count_ && i < 16; ++i) {
    const std::uint64_t byte = (i < 8 ? lo_ >> (8 * i) : hi_ >> (8 * (i - 8))) & 0xff;
    if (i > 0) out += ',';
    if ((byte & 0x80u) != 0) {
      out += to_string(static_cast<DType>((byte >> 4) & 0x7));
      out += '[' + std::to_string((byte >> 1) & 0x7) + ']';
      out += (byte & 1u) != 0 ? 'T' : 'F';
    } else {
      out += byte == 1 ? "one" : byte == 2 ? "div16" : "any";
    }
  }
  return out;
}

const std::string& SignatureCache::text(const SignatureKey& key) {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t i = key.hash() >> 32 & mask;; i = (i + 1) & mask) {
    if (slots_[i].text == nullptr) break;
    if (slots_[i].key == key) return *slots_[i].text;
  }
  texts_.push_back(key.text());
  if (texts_.size() * 2 > slots_.size()) {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.text != nullptr) insert(slot.key, slot.text);
    }
  }
  insert(key, &texts_.back());
  return texts_.back();
}

void SignatureCache::insert(const SignatureKey& key, const std::string* text) {
  const std::size_t mask = slots_.size() - 1;
  std::size_t i = key.hash() >> 32 & mask;
  while (slots_[i].text != nullptr) i = (i + 1) & mask;
  slots_[i] = {key, text};
}

}  // namespace warmgate::engine
