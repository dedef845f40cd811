#include <algorithm>
#include <cstring>
#include <utility>

#include "base/files/private_file.h"
#include "base/log.h"
#include "cluster/peers/peers_impl.h"
#include "json/json.h"

namespace lockstep {
namespace {

// The first byte of a control frame.
constexpr char kMessage = 'm';
constexpr char kPing = 'p';        // with a time of the sender's clock
constexpr char kPingAnswer = 'q';  // repeats that time
constexpr char kIntroductions = 'i';

constexpr size_t kPingBytes = sizeof(int64_t);
constexpr size_t kRoundTripsKept = 16;
constexpr size_t kUnusableMax = 64;
constexpr size_t kStreamsMax = 256;  // per node
constexpr std::chrono::seconds kUnusableShown{60};
constexpr std::chrono::seconds kStrangerLogPeriod{60};

bool is_loopback(const std::string& host) {
  return host.starts_with("127.") || host == "::1" || host == "localhost";
}

// An address is worth sending if it means the same there as here.
bool is_worth_telling(const NetAddress& address, const NetAddress& receiver) {
  return address.host.find('%') == std::string::npos &&
         (!is_loopback(address.host) || is_loopback(receiver.host));
}

std::string introduction(const std::vector<Peer>& peers) {
  JsonArray list;
  for (const Peer& peer : peers) {
    list.push_back(
        JsonObject{{"id", peer.id.text()}, {"name", peer.name}, {"address", peer.address.text()}});
  }
  return dump_json(JsonObject{{"nodes", std::move(list)}});
}

}  // namespace

void Peers::Impl::establish(FrameConnection connection, const NodeDetails& details,
                            const NetAddress& address, const AddressBook::Target* target) {
  if (connected.contains(details.id)) {
    lose(details.id, {ErrorCode::kPeerLost, "it has reconnected"});
  }
  const uint64_t number = next_number++;
  Connected& made = connected[details.id];
  made.number = number;
  made.peer = {
      .id = details.id, .name = details.name, .version = details.version, .address = address};
  made.connection = connection;
  const Peer peer = made.peer;
  unusable.erase(peer.id);
  book.on_connected(peer.id, peer.name, address, target);
  remember();
  set_call_timer();
  log_info("cluster: connected with '{}' (node {}) at {}", peer.name, peer.id.short_text(),
           address.text());
  connection.set_silence_max(options.silence_max);
  introduce(peer);
  if (const auto told = events.on_connected) told(peer);
  const std::weak_ptr<Impl> weak = weak_from_this();
  connection.set_events({.on_frame =
                             [weak, id = peer.id, number](std::string frame) {
                               if (const auto self = weak.lock())
                                 self->on_frame(id, number, std::move(frame));
                             },
                         .on_close =
                             [weak, id = peer.id, number](const Error& error) {
                               if (const auto self = weak.lock())
                                 self->on_closed(id, number, error);
                             },
                         .on_drained = {}});
  // It may have closed since its greeting, before the events were set.
  if (!connection.is_open()) {
    on_closed(peer.id, number, {ErrorCode::kPeerLost, "the other end closed the connection"});
  }
}

void Peers::Impl::on_frame(const NodeId& id, uint64_t number, std::string frame) {
  const auto found = connected.find(id);
  if (found == connected.end() || found->second.number != number || frame.empty()) return;
  const char kind = frame.front();
  if (kind == kMessage) {
    frame.erase(0, 1);
    if (const auto told = events.on_message) told(id, std::move(frame));
  } else if (kind == kIntroductions) {
    on_introductions(id, std::string_view(frame).substr(1));
  } else if (kind == kPing && frame.size() == 1 + kPingBytes) {
    send_control(id, kPingAnswer, std::string_view(frame).substr(1));
  } else if (kind == kPingAnswer && frame.size() == 1 + kPingBytes) {
    on_ping_answer(found->second, std::string_view(frame).substr(1));
  }
  // Anything else is from a later version.
}

void Peers::Impl::on_closed(const NodeId& id, uint64_t number, const Error& error) {
  const auto found = connected.find(id);
  if (found != connected.end() && found->second.number == number) lose(id, error);
}

void Peers::Impl::lose(const NodeId& id, const Error& error) {
  const auto found = connected.find(id);
  if (found == connected.end()) return;
  Connected lost = std::move(found->second);
  connected.erase(found);
  lost.connection.close();
  log_info("cluster: lost '{}' (node {}): {}", lost.peer.name, id.short_text(), error.message);
  book.on_lost(id, Clock::now());
  set_call_timer();
  for (FrameConnection& stream : lost.streams) {
    stream.fail({ErrorCode::kPeerLost, "the node at the other end was lost: " + error.message});
  }
  if (const auto told = events.on_lost) told(id, error);
}

void Peers::Impl::send_control(const NodeId& id, char kind, std::string_view body) {
  const auto found = connected.find(id);
  if (found == connected.end()) return;
  std::string frame(1, kind);
  frame += body;
  found->second.connection.send(frame);
}

void Peers::Impl::ping() {
  const int64_t now_ns = Clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  std::string body(kPingBytes, 0);
  std::memcpy(body.data(), &now_ns, kPingBytes);
  for (const auto& [id, peer] : connected) send_control(id, kPing, body);
  ping_timer = loop.call_after(options.ping_period, [this] { ping(); });
}

// Delays by busy machines are in some of the times but not in the minimum.
void Peers::Impl::on_ping_answer(Connected& peer, std::string_view sent) {
  int64_t sent_ns = 0;
  std::memcpy(&sent_ns, sent.data(), kPingBytes);
  const int64_t now_ns = Clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  const int64_t silence_ns = options.silence_max / std::chrono::nanoseconds(1);
  if (sent_ns >= now_ns || sent_ns < now_ns - silence_ns) return;
  const std::chrono::nanoseconds took(now_ns - sent_ns);
  peer.round_trips.push_back(took);
  if (peer.round_trips.size() > kRoundTripsKept) peer.round_trips.pop_front();
  const auto least = *std::min_element(peer.round_trips.begin(), peer.round_trips.end());
  peer.peer.round_trip = std::chrono::ceil<std::chrono::microseconds>(least);
}

// So that one address is enough: a newcomer is sent the addresses of all others, and they its own.
void Peers::Impl::introduce(const Peer& newcomer) {
  std::vector<Peer> others;
  for (const auto& [id, other] : connected) {
    if (id == newcomer.id) continue;
    if (is_worth_telling(other.peer.address, newcomer.address)) others.push_back(other.peer);
    if (is_worth_telling(newcomer.address, other.peer.address)) {
      send_control(id, kIntroductions, introduction({newcomer}));
    }
  }
  if (!others.empty()) send_control(newcomer.id, kIntroductions, introduction(others));
}

void Peers::Impl::on_introductions(const NodeId& from, std::string_view json) {
  const auto whole = parse_json(json);
  const Json* const nodes = whole.ok() ? find(whole.value(), "nodes") : nullptr;
  if (nodes == nullptr || !nodes->is_array()) {
    return log_warn("cluster: node {} sent invalid introductions", from.short_text());
  }
  size_t count = 0;
  for (const Json& node : nodes->get_array()) {
    if (++count > kPeersMax) break;
    const auto id_text = get_string(node, "id");
    const auto name = get_string(node, "name");
    const auto address_text = get_string(node, "address");
    if (!id_text.ok() || !name.ok() || !address_text.ok()) continue;
    const auto id = NodeId::parse(id_text.value().value_or(""));
    const auto address = parse_net_address(address_text.value().value_or(""), kControlPort);
    if (!id || !address.ok() || !is_node_name(name.value().value_or(""))) continue;
    book.learn(*id, *name.value(), address.value(), AddressBook::Hint::kTold, Clock::now());
  }
  set_call_timer();
}

void Peers::Impl::open_stream(const NodeId& id, const Channel& channel, StreamReady ready) {
  const auto found = connected.find(id);
  if (found == connected.end()) {
    return ready(Error{ErrorCode::kPeerLost, "node " + book.name_of(id) + " is not connected"});
  }
  const auto opening = std::count_if(calls.begin(), calls.end(), [](const auto& entry) {
    return static_cast<bool>(entry.second.ready);
  });
  if (static_cast<size_t>(opening) >= kStreamsMax) {
    return ready(Error{ErrorCode::kExhausted, "too many streams are being opened: try again"});
  }
  start_call({.target = {id, found->second.peer.address},
              .call = {},
              .connection = {},
              .id = {},
              .ready = std::move(ready)},
             channel);
}

// A stream that is not kept is closed: nothing would end it when its node is lost.
Status Peers::Impl::keep_stream(const NodeId& id, FrameConnection& stream) {
  const auto found = connected.find(id);
  if (found == connected.end()) {
    stream.close();
    return Error{ErrorCode::kPeerLost, "node " + book.name_of(id) + " was lost"};
  }
  auto& streams = found->second.streams;
  std::erase_if(streams, [](const FrameConnection& one) { return !one.is_open(); });
  if (streams.size() >= kStreamsMax) {
    stream.close();
    return Error{ErrorCode::kExhausted, "too many streams with node " + book.name_of(id)};
  }
  streams.push_back(stream);
  return Ok{};
}

void Peers::Impl::note_unusable(Peer peer, std::string reason) {
  if (unusable.size() >= kUnusableMax && !unusable.contains(peer.id)) return;
  if (!unusable.contains(peer.id)) {
    log_warn("cluster: '{}' (node {}) at {} cannot take part: {}", peer.name, peer.id.short_text(),
             peer.address.text(), reason);
  }
  const NodeId id = peer.id;
  unusable[id] = {{std::move(peer), std::move(reason)}, Clock::now()};
}

void Peers::Impl::note_stranger(const FrameConnection& connection, const Error& error) {
  ++strangers_refused;
  const auto now = Clock::now();
  if (strangers_refused > 1 && now - stranger_logged_at < kStrangerLogPeriod) return;
  stranger_logged_at = now;
  log_warn("cluster: a caller from {} was refused: {} ({} so far)", connection.peer_host(),
           error.message, strangers_refused);
}

void Peers::Impl::remember() {
  if (!options.remembers) return;
  std::string text = book.text();
  if (text == remembered) return;
  const auto written = replace_remembered_file(identity.cluster_folder() / kPeersFile, text);
  if (!written.ok()) return log_warn("cluster: {}", written.error().message);
  remembered = std::move(text);
}

Peers::Report Peers::Impl::report() {
  const auto now = Clock::now();
  Report report;
  for (const auto& [id, one] : connected) report.connected.push_back(one.peer);
  std::erase_if(unusable,
                [&](const auto& entry) { return now - entry.second.noted_at >= kUnusableShown; });
  for (const auto& [id, one] : unusable) report.unusable.push_back(one.unusable);
  for (const auto& one : book.absent()) {
    if (!unusable.contains(one.id)) {
      report.absent.push_back({.id = one.id, .name = one.name, .address = one.address});
    }
  }
  report.is_one_expected = book.is_one_expected(now);
  report.pins = join_host.pending_pins();
  report.strangers_refused = strangers_refused;
  if (server) report.calls_refused = server->counts().refused;
  if (beacon) {
    report.beacons = beacon->counts();
    report.other_cluster_count = beacon->other_cluster_count();
  }
  report.beacon_problem = beacon_problem;
  return report;
}

}  // namespace lockstep
