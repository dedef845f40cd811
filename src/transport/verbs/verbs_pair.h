// VerbsPair: sets up an RDMA link with one peer: both agree on the queue pair type and the frame
// size, which is tried out, and that both are ready. Used by verbs_upgrade.
#pragma once

#include "transport/verbs/verbs_link.h"

#ifdef LOCKSTEP_HAS_VERBS

#include <chrono>
#include <memory>
#include <string>

#include "transport/tcp/socket_exchange.h"
#include "transport/verbs/verbs_note.h"

namespace lockstep {

class VerbsPair {
 public:
  struct Options {
    int peer = 0;
    uint32_t epoch = 0;
    size_t frame_bytes = 0;  // see VerbsUpgradeOptions
    ExchangeLimits limits;
  };

  // How long run() may try frames at most: its deadline must leave as much.
  static constexpr std::chrono::milliseconds kTrialsMax{3'000};

  // `socket` is taken only if a link results.
  VerbsPair(UniqueFd& socket, VerbsDevices& devices, const VerbsPort& port, const Options& options)
      : socket_(socket), devices_(devices), port_(port), options_(options) {}

  // The link, or null if the pair stays on TCP; then refusal() says why.
  Result<std::unique_ptr<Link>> run();
  const std::string& refusal() const { return refusal_; }
  // Valid once there is a link.
  bool is_reliable() const { return type_ == IBV_QPT_RC; }

 private:
  Result<std::unique_ptr<VerbsLink>> try_size(size_t frame_bytes);
  Result<bool> agree(VerbsNote& own, VerbsNote& peer, const Status& status);
  Status try_frame(VerbsLink& link) const;

  UniqueFd& socket_;
  VerbsDevices& devices_;
  const VerbsPort port_;
  const Options options_;
  ibv_qp_type type_ = IBV_QPT_RC;
  ibv_mtu mtu_ = IBV_MTU_1024;
  std::string refusal_;
};

}  // namespace lockstep

#endif
