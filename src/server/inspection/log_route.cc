#include "server/inspection/log_route.h"

#include <cstdint>
#include <utility>

#include "base/log_ring.h"
#include "json/json.h"
#include "server/request/fresh_json.h"
#include "server/request/query.h"

namespace lockstep {
namespace {

constexpr size_t kLinesMax = 256;  // in one answer

ApiResult<JsonObject> read_log(const HttpRequest& request) {
  const auto query = TRY(parse_query(request.query));
  TRY(check_names(query, {"after"}));
  const uint64_t after =
      TRY(number_in(query, "after", 0, static_cast<uint64_t>(INT64_MAX))).value_or(0);
  JsonArray lines;
  uint64_t next = after;
  for (LogLine& line : log_lines_after(after, kLinesMax)) {
    lines.push_back(JsonObject{{"number", line.number},
                               {"at_ms", line.at_ms},
                               {"level", log_level_name(line.level)},
                               {"text", std::move(line.text)}});
    next = line.number;
  }
  return JsonObject{{"lines", std::move(lines)}, {"next", next}};
}

}  // namespace

void serve_cluster_log(ApiContext&, const HttpRequest& request, const HttpReply& reply) {
  send_fresh(reply, read_log(request));
}

}  // namespace lockstep
