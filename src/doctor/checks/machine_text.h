// This program and this machine in a few lines of text, for fault reports. No names of users or
// hosts. Any thread.
#pragma once

#include <string>

#include "doctor/facts/system_files.h"

namespace lockstep {

std::string machine_text(const SystemFiles& files);

}  // namespace lockstep
