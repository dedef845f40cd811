// This program and this machine in some lines of text, for reports of faults. No names of users or
// hosts. Any thread.
#pragma once

#include <string>

#include "doctor/system_files.h"

namespace lockstep {

std::string machine_text(const SystemFiles& files);

}  // namespace lockstep
