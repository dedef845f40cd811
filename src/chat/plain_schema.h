// A JSON schema without what is written for people: titles, descriptions, examples, defaults. For
// schemas that travel. Pure.
#pragma once

#include "json/json.h"

namespace lockstep {

// Values (of enum and const) and the names of keys stay as they are.
Json plain_schema(const Json& schema);

}  // namespace lockstep
