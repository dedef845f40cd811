#include "server/inspection/doctor_route.h"

#include <fmt/core.h>

#include <chrono>
#include <string>
#include <utility>

#include "doctor/doctor.h"
#include "server/generation/api_context.h"
#include "server/operations/cluster_status.h"
#include "server/request/fresh_json.h"

namespace lockstep {
namespace {

constexpr std::chrono::seconds kExaminationTime{20};

ApiError late_doctor() {
  return {504,
          fmt::format("the doctor has not finished within {} s; it goes on, ask again in a moment",
                      kExaminationTime.count()),
          "", "timeout"};
}

}  // namespace

void serve_cluster_doctor(ApiContext& context, const HttpRequest&, const HttpReply& reply) {
  // The node answers itself: asking over HTTP would need a second worker.
  JsonObject status = status_members(context, look_at_cluster(context));
  const Examination examination{.http_port = context.access().port(), .program = context.program()};
  const auto found = context.examination().get(
      [examination, status = Json(std::move(status))] {
        return dump_json(findings_json(examine(examination, status)));
      },
      kExaminationTime);
  if (found.ok()) return reply.send(fresh_json(found.value()));
  const bool is_late = found.error().code == ErrorCode::kTimeout;
  reply.send(error_response(is_late ? late_doctor() : to_api_error(found.error())));
}

}  // namespace lockstep
