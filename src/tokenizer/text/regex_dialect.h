// Translates syntax that Oniguruma and PCRE2 interpret differently. Only for regex.cc.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace lockstep {

// Rewrites the class intersection [\p{Lu}\p{Lo}&&[^\p{Han}]], which PCRE2 10.42 reads as a list of
// characters, into one class, and \p{Han} into the script only. kUnsupported for intersections of
// another form.
Result<std::string> to_pcre2(std::string_view pattern);

}  // namespace lockstep
