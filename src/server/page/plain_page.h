// The page of a program that was built without Node: a short status, and how to get the real page.
// Served in the same way, by the same rules. Any thread.
#pragma once

#include "server/page/page_file.h"

namespace lockstep {

PageFiles plain_page();

}  // namespace lockstep
