// PartRunner: starts and stops the processes of this node's parts of placements when the cluster
// asks. node/cluster/cluster_driver.h calls it; the answer to each call is a PartEvent for
// ClusterDriver::part_event(). Loop's thread; calls must not wait.
#pragma once

#include <string>
#include <vector>

#include "cluster/brain/messages.h"
#include "cluster/part.h"
#include "cluster/state/desired_state.h"

namespace lockstep {

class PartRunner {
 public:
  virtual ~PartRunner() = default;
  // Answered by kReady or kFailed; kFailed may also come later, if the part ends by itself.
  virtual void start_part(const DesiredEntry& entry, const PlacementShare& part) = 0;
  // Answered by kStopped once no process of it runs and its memory is free.
  virtual void stop_part(const std::string& model, const PlacementEpoch& epoch) = 0;
  // How far the groups are that it leads and whose weights are being read; at most kPartsMax.
  virtual std::vector<LoadProgress> loads() const { return {}; }
};

}  // namespace lockstep
