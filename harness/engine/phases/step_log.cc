#include "harness/engine/phases/step_log.h"

namespace warmgate::engine {

void StepLog::add(const StepShape& shape) {
  const std::int64_t id = next_id_++;
  const Key key{shape.dummy, shape.rows, shape.prefills, shape.decodes};
  const auto it = shapes_.find(key);
  if (it != shapes_.end()) {
    ++it->second.count;
  } else if (shapes_.size() < kMostShapes) {
    tell(shape, shapes_[key] = {id, 1}, false);
  } else {
    if (others_.count++ == 0) others_.first_id = id;
    others_rows_ += shape.rows;
  }
}

void StepLog::end_phase() {
  for (const auto& [key, seen] : shapes_) {
    const auto& [dummy, rows, prefills, decodes] = key;
    if (seen.count > 1) tell({dummy, rows, prefills, decodes}, seen, true);
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

void StepLog::tell(const StepShape& shape, const Seen& seen, bool final) {
  trace::Line line("step");
  line.num("id", seen.first_id).str("kind", shape.dummy ? "dummy" : "real");
  line.num("rows", shape.rows).num("requests", shape.prefills + shape.decodes);
  line.str("phase", recorder_.phase());
  line.num("prefills", shape.prefills).num("decodes", shape.decodes).num("count", seen.count);
  if (final) line.flag("final", true);
  recorder_.send(line);
}

}  // namespace warmgate::engine
