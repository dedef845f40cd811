// GET /cluster/doctor: what the doctor finds on this machine and in its cluster (doctor/doctor.h).
// Only for callers with control. One examination runs at a time, and is not waited for beyond a
// deadline.
#pragma once

#include "net/http/http_server.h"

namespace lockstep {

class ApiContext;

// Answers the JSON of `lockstep doctor --json`.
void serve_cluster_doctor(ApiContext& context, const HttpRequest& request, const HttpReply& reply);

}  // namespace lockstep
