#include "node/cluster_node.h"

namespace lockstep {

struct ClusterNode::Impl {
  ClusterControl* control = nullptr;
};

Result<std::unique_ptr<ClusterNode>> ClusterNode::start(ClusterNodeOptions) {
  return Error{ErrorCode::kUnsupported,
               "serving as a node of a cluster is not built yet: start with --alone"};
}

ClusterNode::ClusterNode(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ClusterNode::~ClusterNode() = default;

ClusterControl& ClusterNode::control() {
  return *impl_->control;
}
std::shared_ptr<ModelDirectory> ClusterNode::models() {
  return nullptr;
}
uint16_t ClusterNode::control_port() const {
  return 0;
}
void ClusterNode::drain(std::chrono::milliseconds) {}
void ClusterNode::stop() {}

}  // namespace lockstep
