// What a preset file may hold; the table drives its reader and its errors.
#pragma once

#include "harness/scenario/fields.h"

namespace warmgate::target {

const scenario::Field& server_preset_field();

}  // namespace warmgate::target
