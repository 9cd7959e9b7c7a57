// The sections of the language, each a field of fields. Used by the tables of fields.cc only.
#pragma once

#include "harness/scenario/fields.h"

namespace warmgate::scenario {

// What is started and served: sections_model.cc, sections_run.cc.
Field model_section();
Field drafter_constants();    // what a preset says of a drafter
Field topk_indices_buffer();  // own | absent
Field drafter_section();
Field limits_section();
Field parallel_section();
Field workload_section();
Field seams_section();
Field target_section();
Field server_section(std::vector<Field> common);  // sections_server.cc
Field behaviour_names();
// What a variant is started from (sections_artefact.cc), and which of them exclude one another.
std::vector<Field> artefact_fields();
std::vector<std::vector<std::string_view>> artefact_choices();
Field architectures();
Field seed();
Field probe_keys();
Field checks_section();
Field ranks_section();

// What is demanded: sections_judge.cc.
Field expect_section();
Field gate_section();
Field allow_section();

}  // namespace warmgate::scenario
