#include "harness/engine/phases/phases.h"

namespace warmgate::engine::phases {

void load(Session& s) {
  s.model->load_target();
  s.model->load_draft();
  s.model->announce_layers();
}

}  // namespace warmgate::engine::phases
