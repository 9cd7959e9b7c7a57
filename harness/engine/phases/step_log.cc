#include "harness/engine/phases/step_log.h"

#include <algorithm>

namespace warmgate::engine {

void StepLog::add(const StepShape& shape) {
  const std::int64_t id = next_id_++;
  const Key key{shape.dummy, shape.rows, shape.prefills, shape.decodes,
                shape.dummy ? shape.longest : 0};
  const auto it = shapes_.find(key);
  if (it != shapes_.end()) {
    Seen& seen = it->second;
    ++seen.count;
    seen.shape.longest = std::max(seen.shape.longest, shape.longest);
    seen.shape.draft_rows = std::max(seen.shape.draft_rows, shape.draft_rows);
  } else if (shapes_.size() < kMostShapes) {
    tell(shapes_[key] = {id, 1, shape}, false);
  } else {
    if (others_.count++ == 0) others_.first_id = id;
    others_rows_ += shape.rows;
  }
}

void StepLog::end_phase() {
  for (const auto& [key, seen] : shapes_) {
    if (seen.count > 1) tell(seen, true);
  }
  if (others_.count > 0) {
    trace::Line line("step");
    line.num("id", others_.first_id).str("kind", "other").num("rows", others_rows_);
    line.num("requests", 0).str("phase", recorder_.phase()).num("count", others_.count);
    recorder_.send(line.flag("final", true));
  }
  shapes_.clear();
  others_ = {};
  others_rows_ = 0;
}

void StepLog::tell(const Seen& seen, bool final) {
  const StepShape& shape = seen.shape;
  trace::Line line("step");
  line.num("id", seen.first_id).str("kind", shape.dummy ? "dummy" : "real");
  line.num("rows", shape.rows).num("requests", shape.prefills + shape.decodes);
  line.str("phase", recorder_.phase());
  line.num("prefills", shape.prefills).num("decodes", shape.decodes).num("count", seen.count);
  line.num("longest", shape.longest);
  if (shape.draft_rows > 0) line.num("draft_rows", shape.draft_rows);
  if (final) line.flag("final", true);
  recorder_.send(line);
}

}  // namespace warmgate::engine
