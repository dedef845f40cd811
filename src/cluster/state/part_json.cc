#include "cluster/state/part_json.h"

#include <fmt/core.h>

#include "cluster/json_fields.h"
#include "cluster/stamp.h"

namespace lockstep {

Json epoch_json(const PlacementEpoch& epoch) {
  return JsonObject{{"counter", epoch.counter},
                    {"coordinator", epoch.coordinator.text()},
                    {"incarnation", epoch.incarnation}};
}

Result<PlacementEpoch> epoch_field(const Json& object, std::string_view key) {
  const Json* value = find(object, key);
  if (value == nullptr) {
    return Error{ErrorCode::kCorrupt, fmt::format("\"{}\" is missing", key)};
  }
  PlacementEpoch epoch;
  epoch.counter = TRY(number_field(*value, "counter", kStampCounterMax));
  epoch.coordinator = TRY(node_field(*value, "coordinator"));
  epoch.incarnation = TRY(number_field(*value, "incarnation"));
  return epoch;
}

}  // namespace lockstep
