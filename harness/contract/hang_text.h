// What a process did when its run was given up on, in words.
#pragma once

#include <string>

#include "harness/contract/view.h"

namespace warmgate::contract {

/// "in cuStreamSynchronize for 12.3 s, in kernel spin, at step (engine.py:12)" of a `hang` event;
/// what the kernel has it wait in where nothing better is known; "" if nothing is.
std::string hang_text(const trace::Event& hang);

/// The most telling one of the run with whose it is, "rank 1 was …"; "" if none was gathered.
std::string most_telling_hang(const View& view);

}  // namespace warmgate::contract
