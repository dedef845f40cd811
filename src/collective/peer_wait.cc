#include "collective/peer_wait.h"

#include <string>

namespace lockstep {
namespace {

constexpr int kRoundsPerLook = 64;  // some 2 us: a usual exchange is over before the first look

}  // namespace

PeerWait::PeerWait(const Group::Options& options)
    : options_(options), wait_(options.timeout, options.cancelled) {}

PeerWait::~PeerWait() {
  if (is_reported_) options_.progress->set(Progress::kComputing);
}

Status PeerWait::pause(int peer, std::string_view what) {
  if (++rounds_ % kRoundsPerLook == 0) {
    TRY(options_.links[static_cast<size_t>(peer)]->health());
    if (options_.progress) {
      options_.progress->set(peer);
      is_reported_ = true;
    }
  }
  Status status = wait_.pause(what);
  if (status.ok()) return status;
  return Error{status.error().code,
               "rank " + std::to_string(peer) + ": " + std::move(status.error().message)};
}

}  // namespace lockstep
