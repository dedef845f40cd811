// JsonTexts: the exact JSON text of objects of a conversation, for templates that write them
// without options. Used by chat_template.h and the functions that make values of JSON.
#pragma once

#include <string>
#include <unordered_map>

#include "json/json.h"

namespace lockstep {

// Printed where a template prints these objects without options.
using JsonTexts = std::unordered_map<const JsonObject*, std::string>;

}  // namespace lockstep
