// GET /: a single page that shows what this node does.
#pragma once

#include "net/http/http_server.h"

namespace lockstep {

HttpResponse status_page();

}  // namespace lockstep
