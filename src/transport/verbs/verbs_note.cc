#include "transport/verbs/verbs_note.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "transport/frame.h"

namespace lockstep {
namespace {

Status check_note(const VerbsNote& note, VerbsNote::Phase phase, int peer) {
  if (note.magic != VerbsNote::kMagic || note.version != VerbsNote::kVersion ||
      note.phase != phase) {
    return peer_error(ErrorCode::kCorrupt, peer, "it does not agree on a link over RDMA");
  }
  return Ok{};
}

}  // namespace

Result<bool> exchange_notes(int socket, VerbsNote& own, VerbsNote& peer, const Status& status,
                            const ExchangeLimits& limits, std::string& refusal) {
  own.is_able = status.ok() ? 1 : 0;
  std::memset(own.reason, 0, sizeof(own.reason));
  if (!status.ok()) {
    const std::string& why = status.error().message;
    std::memcpy(own.reason, why.data(), std::min(why.size(), sizeof(own.reason) - 1));
  }
  TRY(exchange_bytes(socket, std::as_bytes(std::span(&own, 1)),
                     std::as_writable_bytes(std::span(&peer, 1)), limits));
  TRY(check_note(peer, static_cast<VerbsNote::Phase>(own.phase), limits.peer));
  if (!status.ok()) {
    refusal = status.error().message;
  } else if (peer.is_able == 0) {
    peer.reason[sizeof(peer.reason) - 1] = '\0';
    std::string reason(peer.reason);
    std::replace_if(
        reason.begin(), reason.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
    refusal = "rank " + std::to_string(limits.peer) + ": " + reason;
  }
  return status.ok() && peer.is_able != 0;
}

}  // namespace lockstep
