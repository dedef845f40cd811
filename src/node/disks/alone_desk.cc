#include "node/disks/alone_desk.h"

#include <algorithm>
#include <utility>

namespace lockstep {
namespace {

class NoNetwork final : public PieceNetwork {
 public:
  std::vector<NodeId> connected() override { return {}; }
  void open_stream(const NodeId&, const Channel&,
                   std::function<void(Result<FrameConnection>)> ready) override {
    ready(Error{ErrorCode::kPeerLost, "this node is in no cluster"});
  }
};

}  // namespace

// Destroyed from the last to the first.
struct AloneDesk::Impl {
  std::unique_ptr<EventLoop> loop = EventLoop::start();
  NoNetwork network;
  ModelFetcher fetcher;
  ModelDesk desk;

  Impl(const FetchSettings& settings, std::vector<std::string> models)
      : fetcher(*loop, network, NodeId(), settings),
        desk({.loop = *loop,
              .network = network,
              .fetcher = fetcher,
              .self = NodeId(),
              .hub = settings.hub,
              .home = settings.home,
              .is_used = [own = std::move(models)](const ModelId& id) {
                return std::any_of(own.begin(), own.end(), [&](const std::string& model) {
                  return is_read_from(model, id);
                });
              }}) {}
};

AloneDesk::AloneDesk(FetchSettings settings, std::vector<std::string> models)
    : impl_(std::make_unique<Impl>(std::move(settings), std::move(models))) {}
AloneDesk::~AloneDesk() = default;

ModelDesk& AloneDesk::desk() {
  return impl_->desk;
}

}  // namespace lockstep
