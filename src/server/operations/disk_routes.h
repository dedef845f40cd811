// GET and DELETE /cluster/disk, POST and DELETE /cluster/pull: the models on the nodes' disks
// (node/disks/model_desk.h). They wait for disks and other nodes, with deadlines, so they run on a
// thread that may block. All but the list only for callers with control.
#pragma once

#include "access/api_error.h"
#include "json/json.h"
#include "net/http/http_server.h"

namespace lockstep {

class ApiContext;
class ModelDesk;

// 409 if this node has none.
ApiResult<ModelDesk*> desk_for(const ApiContext& context);

// {"nodes": [{"node", "name", "free_bytes", "models"} or {"node", "name", "sentence"}]}
void serve_cluster_disk(ApiContext& context, const HttpRequest& request, const HttpReply& reply);
// {"model", "node"}; without a node from this one. Answers {"model", "node", "removed_bytes"}.
void serve_disk_removal(ApiContext& context, const HttpRequest& request, const HttpReply& reply);
// {"model"}. Answers 202 {"model"}; the status shows the progress.
void serve_pull(ApiContext& context, const HttpRequest& request, const HttpReply& reply);
// {"model"}. Answers {"model"}; what has come stays.
void serve_pull_end(ApiContext& context, const HttpRequest& request, const HttpReply& reply);

// "pulls" of the status. Any thread.
JsonArray pulls_json(const ApiContext& context);

}  // namespace lockstep
