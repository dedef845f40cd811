#include "transport/frame.h"

#include <string>

namespace lockstep {
namespace {

Error wrong(int peer, const char* field, uint64_t found, const char* relation, uint64_t wanted) {
  return Error{ErrorCode::kCorrupt, "rank " + std::to_string(peer) + ": a frame has " + field +
                                        " " + std::to_string(found) + relation +
                                        std::to_string(wanted)};
}

}  // namespace

Status check_header(const FrameHeader& found, const FrameHeader& wanted, int peer) {
  if (found.epoch != wanted.epoch) {
    return wrong(peer, "epoch", found.epoch, " instead of ", wanted.epoch);
  }
  if (found.sequence != wanted.sequence) {
    return wrong(peer, "sequence number", found.sequence, " instead of ", wanted.sequence);
  }
  if (found.length == 0 || found.length > wanted.length) {
    return wrong(peer, "length", found.length, " that is not 1 to ", wanted.length);
  }
  return Ok{};
}

Error peer_error(ErrorCode code, int peer, std::string_view what) {
  return Error{code, "rank " + std::to_string(peer) + ": " + std::string(what)};
}

}  // namespace lockstep
