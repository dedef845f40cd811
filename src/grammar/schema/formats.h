// The values of the keyword "format" that can be enforced, as automata over code points. Pure
// functions; each automaton is made at its first use and cached.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "grammar/dfa/dfa.h"

namespace lockstep {

// date-time, time, date, duration, email, hostname, ipv4, ipv6, uuid, uri; nullptr for others.
// Narrower than the standards in four points: no year 0000; leap seconds only with offsets of whole
// quarters of an hour; no internationalised host names (labels with "--" in the third and fourth
// place), whose validity no automaton can check; host names with many labels only if those are
// short.
std::shared_ptr<const Dfa> format_dfa(std::string_view format);
std::string known_formats();  // for messages

}  // namespace lockstep
