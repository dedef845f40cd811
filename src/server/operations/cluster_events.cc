#include "server/operations/cluster_events.h"

#include <utility>

#include "server/generation/api_context.h"
#include "server/request/errors.h"
#include "server/request/sse.h"

namespace lockstep {

void serve_cluster_events(ApiContext& context, const HttpRequest& request, const HttpReply& reply) {
  if (request.is_head) {  // no stream: it would never end
    reply.start(200, kSseContentType, {{"Cache-Control", "no-store"}});
    return reply.finish();
  }
  const auto added = context.events().add(
      {.reply = reply,
       .is_from_this_machine = request.is_from_this_machine,
       .permission = [&access = context.access(), request]() -> EventHub::Permission {
         return {.may_look = access.may_look(request),
                 .has_control = access.check_control(request).ok()};
       }});
  if (!added.ok()) reply.send(error_response(added.error()));
}

}  // namespace lockstep
