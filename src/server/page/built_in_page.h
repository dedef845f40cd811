// The page that the build compiled into this program; empty if it was built without Node. Generated
// by tools/embed_page.py, as cmake/page.cmake says. Any thread.
#pragma once

#include "server/page/page_file.h"

namespace lockstep {

PageFiles built_in_page();

}  // namespace lockstep
