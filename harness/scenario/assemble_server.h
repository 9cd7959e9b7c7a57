// A server target from a merged tree, and what is wrong with one beyond single values.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "harness/scenario/server.h"
#include "harness/scenario/validate.h"
#include "harness/scenario/yaml_node.h"

namespace warmgate::scenario {

/// `server` is the node of target.server, `workload` that of the scenario's workload (may be
/// null). Members keep the order of the file; `folder` is the scenario file's.
ServerTarget assemble_server(const Node& server, const NodePtr& workload,
                             const std::string& folder);

/// Names that lead nowhere, placeholders of members that do not exist, classes without what they
/// need, no command and no preset. Names of stores are the preset's and not judged here.
void validate_server(const ServerTarget& server, const Node& node, const NodePtr& workload,
                     const Report& report);

/// What decides what is run: of the identity, and shown by resolve. Values of env are left out.
nlohmann::json server_json(const ServerTarget& server);

}  // namespace warmgate::scenario
