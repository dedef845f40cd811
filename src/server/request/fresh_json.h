// JSON about the state of this moment, which no cache may keep. Any thread.
#pragma once

#include <string>
#include <utility>

#include "json/json.h"
#include "net/http/http_server.h"
#include "server/request/errors.h"

namespace lockstep {

inline HttpResponse fresh_json(std::string json, int status = 200) {
  return {status, "application/json", std::move(json), {{"Cache-Control", "no-store"}}};
}

// Sends the value (a Json or a JsonObject), or the error in OpenAI's form.
template <class Value>
void send_fresh(const HttpReply& reply, const ApiResult<Value>& result, int status = 200) {
  if (!result.ok()) return reply.send(error_response(result.error()));
  reply.send(fresh_json(dump_json(result.value()), status));
}

}  // namespace lockstep
