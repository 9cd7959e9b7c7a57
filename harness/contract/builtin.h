// One function per built-in contract; each lives in the file of its name. registry.cc lists them.
#pragma once

#include "harness/contract/contract.h"

namespace warmgate::contract {

const Contract& protocol_contract();
const Contract& starts_contract();
const Contract& owned_resources_contract();
const Contract& keys_valid_contract();
const Contract& keys_reachable_contract();
const Contract& keys_covered_contract();
const Contract& signatures_match_contract();
const Contract& workspace_fits_contract();
const Contract& memory_covers_contract();
const Contract& dummy_legal_contract();
const Contract& warmup_complete_contract();
const Contract& ready_honest_contract();
const Contract& ranks_agree_contract();
const Contract& nothing_left_behind_contract();
const Contract& numerics_contract();
const Contract& graph_stable_contract();
const Contract& stores_declared_contract();
const Contract& speculation_live_contract();
const Contract& answers_differ_contract();
const Contract& code_ready_contract();
const Contract& memory_kept_contract();
const Contract& spans_agree_contract();
const Contract& cache_sound_contract();

/// kBroken if there are findings, else `otherwise`.
Result conclude(std::string_view name, std::vector<Finding> findings,
                State otherwise = State::kKept, std::string why = "");
Result not_observed(std::string_view name, std::vector<std::string> missing, std::string why);
Result not_applicable(std::string_view name, std::string why);

}  // namespace warmgate::contract
