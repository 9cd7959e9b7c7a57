#include "harness/scenario/identity.h"

#include "harness/scenario/assemble_server.h"
#include "harness/scenario/canonical_json.h"
#include "harness/trace/sha256.h"

namespace warmgate::scenario {

std::string identity(const std::vector<Resolved>& ranks, const Target& target) {
  nlohmann::json document;
  document["ranks"] = nlohmann::json::array();
  for (const Resolved& rank : ranks) {
    nlohmann::json one = to_json(rank);
    one.erase("schema");
    one["model"].erase("name");
    one.erase("collective_deadline_ms");  // how patient the run is, not what it is
    one.erase("checks");                  // how closely it is looked at
    document["ranks"].push_back(std::move(one));
  }
  if (target.kind == Target::Kind::kCommand) document["argv"] = target.argv;
  if (target.server) document["server"] = server_json(*target.server);
  return trace::sha256_hex(canonical_json(document));
}

}  // namespace warmgate::scenario
