// The page of tests/data/page, built in by tools/embed_page.py as the real one is.
#pragma once

#include "server/page/page_file.h"

namespace lockstep {

PageFiles fake_page();  // generated (tests/CMakeLists.txt)

}  // namespace lockstep
