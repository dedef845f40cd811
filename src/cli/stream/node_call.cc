#include "cli/stream/node_call.h"

namespace lockstep {

std::optional<Result<Json>> NodeCall::poll() {
  while (true) {
    NodeStream::Step step = stream_->next(std::chrono::milliseconds(0));
    if (step.kind == NodeStream::Kind::kNothing) return std::nullopt;
    if (step.kind == NodeStream::Kind::kFailure) return Result<Json>(*step.error);
    if (step.kind == NodeStream::Kind::kEnd) return parse_json(body_);
    body_ += step.piece;
    if (body_.size() > kBodyBytesMax) {
      return Result<Json>(Error{ErrorCode::kCorrupt, "the answer of the node is too long"});
    }
  }
}

}  // namespace lockstep
