#include "cluster/join/join_cluster.h"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <utility>

#include "base/byte_text.h"
#include "cluster/join/blocking_connection.h"
#include "cluster/join/join_frames.h"
#include "cluster/join/pin_desk.h"

namespace lockstep {
namespace {

constexpr std::chrono::milliseconds kAnswerTimeout{5'000};
constexpr size_t kSeenMax = 256;
// After the first beacon: for its copies by other paths.
constexpr std::chrono::milliseconds kCopies{200};

std::string digits_of(std::string_view typed) {
  std::string digits;
  std::copy_if(typed.begin(), typed.end(), std::back_inserter(digits),
               [](char c) { return c != ' ' && c != '-'; });
  return digits;
}

bool is_link_local(const NetAddress& address) {
  return address.host.find('%') != std::string::npos;
}

Result<JoinFrame> receive(BlockingConnection& connection, const JoinRequest& request) {
  const std::string text = TRY(connection.receive(kAnswerTimeout, request.cancelled));
  JoinFrame frame = TRY(parse_join_frame(text));
  if (frame.state == "refused") {
    return Error{ErrorCode::kInvalidArgument, request.address.text() + " refused: " + frame.reason};
  }
  return frame;
}

JoinRequestFrame first_frame(const Identity& identity, const JoinRequest& request) {
  return {.name = identity.name(), .version = request.version, .protocols = kProtocols};
}

Result<ClusterKey> join_with_token(BlockingConnection& connection, const Identity& identity,
                                   const JoinRequest& request) {
  const JoinToken& token = *request.token;
  const Digest session = connection.session_secret();
  JoinRequestFrame first = first_frame(identity, request);
  first.with_token = true;
  first.token_expires_s = token.expires_s;
  first.token_number = token.number;
  first.token_confirmation = TRY(token_proof(token.secret, true, session));
  connection.send(encode_join_request(first));
  const JoinFrame answer = TRY(receive(connection, request));
  const Digest expected = TRY(token_proof(token.secret, false, session));
  if (!is_same_secret(expected, bytes_of(answer.confirmation))) {
    return Error{ErrorCode::kInvalidArgument,
                 request.address.text() + " is not a node of the cluster that created the token"};
  }
  return ClusterKey::parse(answer.key);
}

Result<std::string> ask_pin(BlockingConnection& connection, const JoinRequest& request) {
  const JoinFrame offered = TRY(receive(connection, request));
  const NodeId node = TRY(NodeId::of_public_key(connection.peer_key()));
  const auto typed = request.ask_pin({.node_name = offered.name,
                                      .node_id = node.short_text(),
                                      .cluster = offered.cluster.substr(0, 8)});
  if (!typed) return Error{ErrorCode::kCancelled, "no PIN was typed"};
  std::string pin = digits_of(*typed);
  const bool is_pin =
      pin.size() == PinDesk::kDigits &&
      std::all_of(pin.begin(), pin.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!is_pin) return Error{ErrorCode::kInvalidArgument, "a PIN has 8 digits: ask for a new one"};
  return pin;
}

Result<ClusterKey> join_with_pin(BlockingConnection& connection, const Identity& identity,
                                 const JoinRequest& request) {
  connection.send(encode_join_request(first_frame(identity, request)));
  const std::string pin = TRY(ask_pin(connection, request));
  Spake2 proof = TRY(start_pin_proof(Spake2::Side::kA, identity.key().public_key(),
                                     connection.peer_key(), connection.session_secret(), pin));
  connection.send(encode_join_frame({.share = std::string(text_of(proof.share()))}));
  const JoinFrame share = TRY(receive(connection, request));
  TRY(proof.finish(bytes_of(share.share)));
  connection.send(encode_join_frame({.confirmation = std::string(text_of(proof.confirmation()))}));
  const JoinFrame last = TRY(receive(connection, request));
  // Only now is it certain that the node that shows the PIN is the one we talk to.
  if (!is_same_secret(proof.expected_confirmation(), bytes_of(last.confirmation))) {
    return Error{
        ErrorCode::kInvalidArgument,
        request.address.text() + " does not know the PIN: it is not the node that shows it"};
  }
  return ClusterKey::parse(last.key);
}

}  // namespace

Result<ClusterKey> join_cluster(EventLoop& loop, const Identity& identity,
                                const JoinRequest& request) {
  const TlsIdentity tls = TRY(TlsIdentity::make(identity.key()));
  FrameLimits limits;
  limits.trust_timeout = PinDesk::kLifetime + kAnswerTimeout;
  BlockingConnection connection = TRY(BlockingConnection::call(loop, tls, request.address, limits));
  const ClusterKey key = TRY(request.token ? join_with_token(connection, identity, request)
                                           : join_with_pin(connection, identity, request));
  if (request.token && request.token->cluster != key.id()) {
    return Error{ErrorCode::kCorrupt,
                 "the key that arrived belongs to another cluster than the token"};
  }
  return key;
}

Result<std::vector<ClusterSeen>> find_clusters(EventLoop& loop, const Identity& identity,
                                               const Beacon::Options& options,
                                               std::chrono::milliseconds time, bool first_only) {
  std::mutex mutex;
  std::condition_variable heard;
  std::map<NodeId, ClusterSeen> seen;
  Status started = Ok{};
  std::unique_ptr<Beacon> beacon;  // belongs to the loop's thread
  TRY(loop.run_and_wait([&] {
    auto made = Beacon::start(loop, identity, options, [&](const Beacon::Sighting& sighting) {
      const std::lock_guard lock(mutex);
      if (seen.size() >= kSeenMax) return;
      ClusterSeen& one = seen[sighting.id];
      // A link-local address is the last choice: it works on one interface only, and not right
      // after that came up.
      if (one.name.empty() || is_link_local(one.address)) {
        one = {sighting.message.cluster, sighting.id, sighting.message.name, sighting.address};
      }
      heard.notify_all();
    });
    if (made.ok()) {
      beacon = std::move(made.value());
    } else {
      started = made.error();
    }
  }));
  TRY(std::move(started));
  {
    std::unique_lock lock(mutex);
    if (heard.wait_for(lock, time, [&] { return first_only && !seen.empty(); })) {
      heard.wait_for(lock, kCopies, [] { return false; });
    }
  }
  loop.must_run([&] { beacon.reset(); });
  std::vector<ClusterSeen> all;
  for (auto& [id, one] : seen) all.push_back(std::move(one));
  return all;
}

}  // namespace lockstep
