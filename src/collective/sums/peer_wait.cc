#include "collective/sums/peer_wait.h"

#include <bit>
#include <string>

namespace lockstep {
namespace {

// While polling: some 2 us, an ordinary exchange ends before the first check. A round that yields
// may take milliseconds, so each of those checks.
constexpr int kRoundsPerPeerLook = 64;

}  // namespace

PeerWait::PeerWait(const GroupOptions& options)
    : options_(options), wait_(options.timeout, options.cancelled) {}

PeerWait::~PeerWait() {
  if (is_reported_) options_.progress->set(Progress::kComputing);
}

Status PeerWait::pause(PeerSet unheard, PeerSet unsent) {
  const int first = std::countr_zero(unheard != 0 ? unheard : unsent);
  if (++rounds_ % kRoundsPerPeerLook == 0 || wait_.is_yielding()) {
    TRY(look(unheard | unsent, first));
  }
  Status status = wait_.pause(unheard != 0 ? "message" : "room for a message");
  if (status.ok()) return status;
  return Error{status.error().code, "rank " + std::to_string(options_.name_of(first)) + ": " +
                                        std::move(status.error().message)};
}

Status PeerWait::look(PeerSet peers, int first) {
  for (PeerSet left = peers; left != 0; left &= left - 1) {
    TRY(options_.links[static_cast<size_t>(std::countr_zero(left))]->health());
  }
  if (options_.progress) {
    options_.progress->set(options_.name_of(first));
    is_reported_ = true;
  }
  return Ok{};
}

}  // namespace lockstep
