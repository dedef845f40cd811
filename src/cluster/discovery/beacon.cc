#include "cluster/discovery/beacon.h"

#include <algorithm>
#include <random>
#include <utility>

#include "base/log.h"

namespace lockstep {
namespace {

constexpr std::chrono::milliseconds kFirstPeriods[] = {std::chrono::milliseconds(300),
                                                       std::chrono::milliseconds(500)};
// A flood must not keep the loop from other work: the rest is read in the next round.
constexpr int kDatagramsPerRound = 64;

uint64_t wall_clock_ms() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
}

// Spreads out nodes that were started together.
std::chrono::milliseconds jittered(std::chrono::milliseconds period) {
  static thread_local std::minstd_rand random(std::random_device{}());
  std::uniform_int_distribution<int64_t> spread(-period.count() / 5, period.count() / 5);
  return period + std::chrono::milliseconds(spread(random));
}

}  // namespace

Result<std::unique_ptr<Beacon>> Beacon::start(EventLoop& loop, const Identity& identity,
                                              const Options& options, OnSighting on_sighting) {
  MulticastSockets sockets = TRY(MulticastSockets::open({.group_v4 = kGroupV4,
                                                         .group_v6 = kGroupV6,
                                                         .port = options.port,
                                                         .loopback_only = options.loopback_only}));
  std::optional<Digest> key;
  if (identity.cluster()) key = TRY(identity.cluster()->derive(kBeaconPurpose));
  std::unique_ptr<Beacon> beacon(
      new Beacon(loop, identity, options, key, std::move(sockets), std::move(on_sighting)));
  beacon->beat();
  return beacon;
}

Beacon::Beacon(EventLoop& loop, const Identity& identity, const Options& options,
               std::optional<Digest> beacon_key, MulticastSockets sockets, OnSighting on_sighting)
    : loop_(loop),
      key_(identity.key()),
      beacon_key_(beacon_key),
      sends_(beacon_key && options.control_port),
      on_sighting_(std::move(on_sighting)),
      filter_(identity.id(), beacon_key,
              identity.cluster() ? identity.cluster()->id() : ClusterId()),
      sockets_(std::move(sockets)) {
  message_.protocols = options.protocols;
  message_.key = key_.public_key();
  message_.name = identity.name();
  message_.version = options.version;
  if (identity.cluster()) message_.cluster = identity.cluster()->id();
  if (options.control_port) message_.control_port = *options.control_port;
  if (sockets_.fd_v4() >= 0) {
    watch_v4_ = loop_.watch_readable(sockets_.fd_v4(), [this] { receive(); });
  }
  if (sockets_.fd_v6() >= 0) {
    watch_v6_ = loop_.watch_readable(sockets_.fd_v6(), [this] { receive(); });
  }
  log_info("cluster: looking for other machines on {}", sockets_.interface_names());
}

void Beacon::beat() {
  if (sockets_.refresh()) {
    log_info("cluster: looking for other machines on {} now", sockets_.interface_names());
    beat_count_ = 0;  // nodes on the new network must hear of us soon
  }
  if (sends_) send();
  const auto period =
      beat_count_ < std::size(kFirstPeriods) ? kFirstPeriods[beat_count_] : jittered(kPeriod);
  ++beat_count_;
  timer_ = loop_.call_after(period, [this] { beat(); });
}

void Beacon::send() {
  message_.time_ms = std::max(message_.time_ms + 1, wall_clock_ms());
  const auto datagram = encode_beacon(message_, key_, *beacon_key_);
  if (!datagram.ok()) return log_warn("cluster: no beacon: {}", datagram.error().message);
  sockets_.send(datagram.value());
}

void Beacon::receive() {
  for (int i = 0; i < kDatagramsPerRound; ++i) {
    const auto datagram = sockets_.receive();
    if (!datagram) return;
    auto seen = filter_.look_at(datagram->bytes, BeaconFilter::Clock::now());
    if (!seen) continue;
    const uint16_t port = seen->message.control_port;
    on_sighting_({seen->id, std::move(seen->message), {datagram->host, port}, seen->is_copy});
  }
  rest_ = loop_.call_after(std::chrono::milliseconds(0), [this] { receive(); });
}

}  // namespace lockstep
