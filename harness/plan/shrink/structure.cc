#include "harness/plan/shrink/structure.h"

#include <algorithm>

namespace warmgate::plan::shrink {

std::string_view to_string(Role role) {
  switch (role) {
    case Role::kTarget:
      return "target";
    case Role::kTapped:
      return "tapped";
    case Role::kDraft:
      return "draft";
  }
  return "target";
}

bool Structure::tapped(std::int64_t id) const {
  return std::find(taps.begin(), taps.end(), id) != taps.end();
}

Pair Structure::pair_of(std::int64_t id) const {
  if (id >= layers()) return {draft.at(static_cast<std::size_t>(id - layers())), Role::kDraft};
  return {target.at(static_cast<std::size_t>(id)), tapped(id) ? Role::kTapped : Role::kTarget};
}

std::set<Pair> Structure::pairs() const {
  std::set<Pair> out;
  const std::int64_t all = layers() + static_cast<std::int64_t>(draft.size());
  for (std::int64_t id = 0; id < all; ++id) out.insert(pair_of(id));
  return out;
}

}  // namespace warmgate::plan::shrink
