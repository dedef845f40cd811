// A JSON schema without the parts for human readers: titles, descriptions, examples, defaults. For
// schemas sent over the network. Pure.
#pragma once

#include "json/json.h"

namespace lockstep {

// Values (of enum and const) and the names of keys stay as they are.
Json plain_schema(const Json& schema);

}  // namespace lockstep
