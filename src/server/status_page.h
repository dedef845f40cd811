// GET /: one screen that shows what this node does, until the web page exists.
#pragma once

#include "net/http_server.h"

namespace lockstep {

HttpResponse status_page();

}  // namespace lockstep
