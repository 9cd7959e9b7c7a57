// A tokenizer that knows bytes and the special tokens of a config, and nothing else: enough for
// text requests to a model whose answers mean nothing anyway.
#pragma once

#include <map>
#include <string>

#include "harness/plan/shrink/json_file.h"

namespace warmgate::plan::shrink {

/// File name → text: tokenizer.json (byte-level BPE without merges) and tokenizer_config.json. The
/// special tokens keep the ids of the config, the 256 bytes take the lowest that are left.
/// Complains if the vocabulary is too small, or an id is outside it.
std::map<std::string, std::string> tokenizer_stub(const Json& config, Complaints& complaints);

}  // namespace warmgate::plan::shrink
