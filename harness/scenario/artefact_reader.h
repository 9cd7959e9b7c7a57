// From a merged tree to an Artefact, and what cannot be one.
#pragma once

#include "harness/scenario/artefact.h"
#include "harness/scenario/scenario.h"
#include "harness/scenario/validate.h"

namespace warmgate::scenario {

Artefact assemble_artefact(const NodePtr& tree);

/// Adds a problem for each combination that cannot be started and each value that a program would
/// take for an option or an address for a file. Looks at no file: what is missing on this machine
/// is found when the artefact is made.
void check_artefact(const Artefact& artefact, const Target& target, const NodePtr& tree,
                    const Report& report);

/// `command` in the place of the target's own. Targets of several members have no such place.
void put_command(const Artefact& artefact, Target& target);

/// What `warmgate resolve` prints of it: the key, and what it says. Arguments that may hold a
/// secret are counted, URLs are bare.
nlohmann::json describe(const Artefact& artefact);
/// A URL without user, password, query and fragment, as it may be shown.
std::string bare_url(const std::string& url);

/// "venv", "worktree" …; "" for kNone.
std::string_view to_string(Artefact::Kind kind);

}  // namespace warmgate::scenario
