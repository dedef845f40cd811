// The body of POST /cluster/load as an entry of the desired state. Pure.
#pragma once

#include <optional>
#include <string_view>

#include "model/options/kv_kind.h"
#include "node/cluster/cluster_control.h"
#include "server/request/errors.h"
#include "server/request/request_fields.h"

namespace lockstep {

// Nodes are given by a name, an id, or the first digits of an id in `report`. A 400 error names the
// field. The entry has no stamp yet.
ApiResult<DesiredEntry> parse_load_request(std::string_view body, const ClusterReport& report);

// The field "kv" of this and other bodies, a kind of keys and values; nullopt if it is missing.
ApiResult<std::optional<KvKind>> read_kv(RequestFields& fields);

}  // namespace lockstep
