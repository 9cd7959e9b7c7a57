// What each key of a config must be, whether or not the sums need it: an engine that is started on
// the small folder reads all of them.
#pragma once

#include "harness/plan/shrink/reader.h"

namespace warmgate::plan::shrink {

/// Complains of texts, booleans, fractions, negative and not finite numbers where a size, a count
/// or a rate stands, of lists where an object does and of the like. Says nothing of keys that a
/// reader complained of already, nor of those whose name it does not know; NaN stands nowhere.
void check_value_types(Reader& reader, const Complaints& complaints);

}  // namespace warmgate::plan::shrink
