// What Oniguruma reads and PCRE2 reads as something else. For regex.cc alone.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace lockstep {

// Rewrites the class intersection [\p{Lu}\p{Lo}&&[^\p{Han}]], which PCRE2 10.42 takes for a list of
// characters, into one class, and \p{Han} into the script alone. kUnsupported for intersections of
// another form.
Result<std::string> to_pcre2(std::string_view pattern);

}  // namespace lockstep
