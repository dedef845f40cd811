#include "cluster/peers/peers.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/files/private_file.h"
#include "base/log.h"
#include "cluster/peers/peers_impl.h"

namespace lockstep {
namespace {

constexpr size_t kCallsMax = 64;

Result<Greeting::Own> own_greeting(const Identity& identity, const Peers::Options& options) {
  const auto secret = TRY(identity.cluster()->derive(Greeting::kPurpose));
  Greeting::Own own{.key = identity.key().public_key(),
                    .secret = secret,
                    .details = {.id = identity.id(),
                                .name = identity.name(),
                                .version = options.version,
                                .protocols = options.protocols}};
  std::array<std::byte, 8> run{};
  TRY(fill_random(run));
  std::memcpy(&own.details.run, run.data(), run.size());
  return own;
}

}  // namespace

Result<std::unique_ptr<Peers>> Peers::start(EventLoop& loop, const Identity& identity,
                                            const Options& options, Events events) {
  LOCKSTEP_CHECK(identity.cluster().has_value());
  TlsIdentity tls = TRY(TlsIdentity::make(identity.key()));
  Greeting::Own own = TRY(own_greeting(identity, options));
  JoinHost::Options join{.key = identity.key().public_key(),
                         .name = identity.name(),
                         .cluster = *identity.cluster(),
                         .wall_clock_s = {}};
  auto impl = std::make_shared<Impl>(loop, identity, options, std::move(events), std::move(tls),
                                     std::move(own), std::move(join));
  Status opened = Ok{};
  TRY(loop.run_and_wait([&] {
    opened = impl->open();
    if (!opened.ok()) impl->close();
  }));
  TRY(std::move(opened));
  return std::unique_ptr<Peers>(new Peers(loop, std::move(impl)));
}

Peers::~Peers() {
  loop_.must_run([this] {
    impl_->close();
    impl_.reset();
  });
}

Status Peers::Impl::open() {
  const std::weak_ptr<Impl> weak = weak_from_this();
  server = TRY(FrameServer::listen(loop, tls, {.host = options.host, .port = options.port},
                                   [weak](FrameConnection connection) {
                                     if (const auto self = weak.lock()) {
                                       self->on_caller(std::move(connection));
                                     }
                                   }));
  own.details.control_port = server->port();
  if (options.uses_beacon) {
    Beacon::Options chosen{.port = options.beacon_port,
                           .loopback_only = options.beacon_loopback_only,
                           .control_port = server->port(),
                           .version = options.version,
                           .protocols = options.protocols};
    auto started = Beacon::start(loop, identity, chosen, [weak](const Beacon::Sighting& sighting) {
      if (const auto self = weak.lock()) self->on_sighting(sighting);
    });
    if (started.ok()) {
      beacon = std::move(started.value());
    } else {  // the other ways to meet remain
      beacon_problem = started.error().message;
      log_warn("cluster: {}", beacon_problem);
    }
  }
  for (const NetAddress& address : options.join) book.want(address, Clock::now());
  if (options.remembers) {
    TRY(make_private_folder(identity.cluster_folder()));
    if (auto text = read_private_file(identity.cluster_folder() / kPeersFile); text.ok()) {
      remembered = std::move(text.value());
      book.read(remembered, Clock::now());
    }
  }
  ping();
  call_due();
  return Ok{};
}

void Peers::Impl::close() {
  events = {};
  call_timer.cancel();
  ping_timer.cancel();
  beacon.reset();
  server.reset();
  for (auto& [number, call] : std::exchange(calls, {})) {
    call.connection.close();
    if (call.ready) call.ready(Error{ErrorCode::kCancelled, "this node is stopping"});
  }
  for (auto& [id, peer] : std::exchange(connected, {})) {
    peer.connection.close();
    for (FrameConnection& stream : peer.streams) {
      stream.fail({ErrorCode::kCancelled, "this node is stopping"});
    }
  }
}

void Peers::Impl::on_caller(FrameConnection connection) {
  FrameConnection handle = connection;
  handle.set_events(
      {.on_frame =
           [weak = weak_from_this(), connection](std::string frame) mutable {
             const auto self = weak.lock();
             if (!self) return connection.close();
             switch (first_frame_kind(frame)) {
               case FirstFrame::kMember:
                 return self->greet_caller(std::move(connection), frame);
               case FirstFrame::kJoin:
                 return self->join_host.take(std::move(connection), frame);
               case FirstFrame::kUnknown:
                 self->note_stranger(
                     connection, {ErrorCode::kCorrupt, "it does not speak the protocol of nodes"});
                 return connection.close();
             }
           },
       .on_close = {},
       .on_drained = {}});
}

void Peers::Impl::greet_caller(FrameConnection connection, std::string_view first_frame) {
  const std::weak_ptr<Impl> weak = weak_from_this();
  Greeting::answer(
      std::move(connection), own, first_frame,
      [weak](const NodeDetails& details, const Channel& channel) -> Status {
        if (const auto self = weak.lock()) return self->judge_caller(details, channel);
        return Error{ErrorCode::kCancelled, "this node is stopping"};
      },
      [weak](FrameConnection greeted, const Greeting::Outcome& outcome) {
        const auto self = weak.lock();
        if (!self) return greeted.close();
        const NodeDetails& details = outcome.details;
        const NetAddress address{outcome.is_member ? greeted.peer_host() : "",
                                 details.control_port};
        if (outcome.status.ok() && outcome.channel.is_control()) {
          self->establish(std::move(greeted), details, address, nullptr);
        } else if (outcome.status.ok()) {
          greeted.set_silence_max(std::chrono::milliseconds(0));
          if (self->keep_stream(details.id, greeted).ok()) {
            self->events.on_stream(details.id, outcome.channel, std::move(greeted));
          }
        } else if (outcome.is_member && outcome.status.error().code == ErrorCode::kUnsupported) {
          self->note_unusable({details.id, details.name, details.version, address},
                              outcome.status.error().message);
        } else if (outcome.status.error().code == ErrorCode::kInvalidArgument) {
          self->note_stranger(greeted, outcome.status.error());
        }
      });
}

// Two nodes may call each other at the same time; the call of the lower id wins. It is refused only
// for one of ours that the other end has, or will have, in its table: see judge_called().
Status Peers::Impl::judge_caller(const NodeDetails& details, const Channel& channel) {
  if (details.id == own.details.id) {
    return Error{ErrorCode::kCancelled, "a node cannot connect to itself"};
  }
  if (!channel.is_control()) {
    if (!connected.contains(details.id)) {
      return Error{ErrorCode::kCancelled, "the control connection must come first"};
    }
    if (events.on_stream) return Ok{};
    return Error{ErrorCode::kCancelled, "this node does not accept streams"};
  }
  if (connected.size() >= kPeersMax && !connected.contains(details.id)) {
    return Error{ErrorCode::kCancelled, "this node has its maximum number of connections"};
  }
  const bool calls_it = std::any_of(calls.begin(), calls.end(), [&](const auto& entry) {
    return entry.second.is_committed && !entry.second.ready && entry.second.id == details.id;
  });
  if (calls_it && own.details.id < details.id) {
    return Error{ErrorCode::kCancelled, "a call in the other direction is in progress"};
  }
  give_up_calls_to(details.id);
  return Ok{};
}

void Peers::Impl::on_sighting(const Beacon::Sighting& sighting) {
  const BeaconMessage& message = sighting.message;
  if (!common_protocol(options.protocols, message.protocols)) {
    note_unusable({sighting.id, message.name, message.version, sighting.address},
                  protocol_mismatch(message.version, message.protocols, options.protocols));
    return;
  }
  const auto hint = sighting.is_copy ? AddressBook::Hint::kCopy : AddressBook::Hint::kAlive;
  book.learn(sighting.id, message.name, sighting.address, hint, Clock::now());
  set_call_timer();
}

void Peers::Impl::call_due() {
  for (AddressBook::Target& target : book.take_due(Clock::now())) {
    if (calls.size() >= kCallsMax) {
      book.on_failed(target, Clock::now());
      continue;
    }
    start_call({.target = std::move(target), .call = {}, .connection = {}, .id = {}, .ready = {}},
               Channel{});
  }
  set_call_timer();
}

void Peers::Impl::set_call_timer() {
  const auto next = book.next_due();
  if (!next) return call_timer.cancel();
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(*next - Clock::now());
  call_timer =
      loop.call_after(std::max(wait, std::chrono::milliseconds(0)), [this] { call_due(); });
}

uint64_t Peers::Impl::start_call(Call call, const Channel& channel) {
  const uint64_t number = next_number++;
  const NetAddress address = call.target.address;
  Call& kept = calls.emplace(number, std::move(call)).first->second;
  kept.call =
      FrameCall::start(loop, tls, address, FrameLimits{},
                       [weak = weak_from_this(), number, channel](Result<FrameConnection> result) {
                         const auto self = weak.lock();
                         if (self) self->on_called(number, channel, std::move(result));
                       });
  return number;
}

void Peers::Impl::on_called(uint64_t number, const Channel& channel,
                            Result<FrameConnection> result) {
  const auto found = calls.find(number);
  if (found == calls.end()) return;
  if (!result.ok()) return on_call_failed(number, result.error());
  found->second.connection = result.value();
  const std::weak_ptr<Impl> weak = weak_from_this();
  Greeting::call(
      std::move(result.value()), own, channel, found->second.target.node,
      [weak, number](const NodeDetails& details, const Channel& wanted) -> Status {
        if (const auto self = weak.lock()) return self->judge_called(number, details, wanted);
        return Error{ErrorCode::kCancelled, "this node is stopping"};
      },
      [weak, number](FrameConnection connection, const Greeting::Outcome& outcome) {
        const auto self = weak.lock();
        if (!self) return connection.close();
        self->on_greeted(number, std::move(connection), outcome);
      });
}

// Once this accepts, the other end learns of the call. judge_caller() refuses others' calls only in
// favour of such calls, so of two that cross exactly one is refused.
Status Peers::Impl::judge_called(uint64_t number, const NodeDetails& details,
                                 const Channel& channel) {
  const auto found = calls.find(number);
  if (found == calls.end()) return Error{ErrorCode::kCancelled, "given up"};
  if (channel.is_control()) {
    if (details.id == own.details.id) {
      return Error{ErrorCode::kCancelled, "a node cannot connect to itself"};
    }
    if (connected.contains(details.id)) return Error{ErrorCode::kCancelled, "already connected"};
    const bool calls_it = std::any_of(calls.begin(), calls.end(), [&](const auto& entry) {
      return entry.second.is_committed && !entry.second.ready && entry.second.id == details.id;
    });
    if (calls_it) return Error{ErrorCode::kCancelled, "already called"};
  }
  found->second.id = details.id;
  found->second.is_committed = true;
  return Ok{};
}

void Peers::Impl::on_greeted(uint64_t number, FrameConnection connection,
                             const Greeting::Outcome& outcome) {
  const auto found = calls.find(number);
  if (found == calls.end()) return connection.close();
  const NodeDetails& details = outcome.details;
  const AddressBook::Target target = found->second.target;
  if (outcome.status.ok()) {
    const StreamReady ready = std::move(found->second.ready);
    calls.erase(found);
    if (!ready) {
      // Ranks need a numeric address; `target` may have a name.
      const NetAddress reached{connection.peer_host(), target.address.port};
      return establish(std::move(connection), details, reached, &target);
    }
    connection.set_silence_max(std::chrono::milliseconds(0));
    auto kept = keep_stream(details.id, connection);
    return kept.ok() ? ready(std::move(connection)) : ready(std::move(kept.error()));
  }
  if (outcome.is_member && outcome.status.error().code == ErrorCode::kUnsupported) {
    note_unusable({details.id, details.name, details.version, target.address},
                  outcome.status.error().message);
  }
  if (details.id == own.details.id) book.on_own(target);
  if (outcome.is_member && connected.contains(details.id) && !found->second.ready) {
    book.on_connected(details.id, details.name, target.address, &target);
  }
  on_call_failed(number, outcome.status.error());
}

void Peers::Impl::on_call_failed(uint64_t number, const Error& error) {
  const auto found = calls.find(number);
  if (found == calls.end()) return;
  Call call = std::move(found->second);
  calls.erase(found);
  call.connection.finish();
  if (call.ready) return call.ready(error);
  book.on_failed(call.target, Clock::now());
  set_call_timer();
}

void Peers::Impl::give_up_calls_to(const NodeId& id) {
  std::vector<uint64_t> numbers;
  for (const auto& [number, call] : calls) {
    if (call.is_committed && !call.ready && call.id == id) numbers.push_back(number);
  }
  for (const uint64_t number : numbers) {
    on_call_failed(number, {ErrorCode::kCancelled, "the other end called first"});
  }
}

uint16_t Peers::port() const {
  return impl_->own.details.control_port;
}

void Peers::send(const NodeId& node, std::string message) {
  LOCKSTEP_CHECK(message.size() <= kMessageBytesMax);
  loop_.post([weak = std::weak_ptr<Impl>(impl_), node, message = std::move(message)] {
    if (const auto self = weak.lock()) self->send_control(node, 'm', message);
  });
}

void Peers::send_to_all(std::string message) {
  LOCKSTEP_CHECK(message.size() <= kMessageBytesMax);
  loop_.post([weak = std::weak_ptr<Impl>(impl_), message = std::move(message)] {
    const auto self = weak.lock();
    if (!self) return;
    for (const auto& [id, peer] : self->connected) self->send_control(id, 'm', message);
  });
}

void Peers::open_stream(const NodeId& node, const Channel& channel,
                        std::function<void(Result<FrameConnection>)> ready) {
  LOCKSTEP_CHECK(!channel.is_control() && channel.kind.size() <= Channel::kKindBytesMax &&
                 channel.purpose.size() <= Channel::kPurposeBytesMax);
  loop_.post([weak = std::weak_ptr<Impl>(impl_), node, channel, ready = std::move(ready)] {
    if (const auto self = weak.lock()) return self->open_stream(node, channel, ready);
    ready(Error{ErrorCode::kCancelled, "this node is stopping"});
  });
}

void Peers::join(const NetAddress& address) {
  loop_.post([weak = std::weak_ptr<Impl>(impl_), address] {
    const auto self = weak.lock();
    if (!self) return;
    self->book.want(address, Impl::Clock::now());
    self->set_call_timer();
  });
}

Peers::Report Peers::report() const {
  if (loop_.is_current_thread()) return impl_->report();
  Report report;
  const Status made = loop_.run_and_wait([&] { report = impl_->report(); });
  if (!made.ok()) log_warn("cluster: no report of the peers: {}", made.error().message);
  return report;
}

std::string Peers::name_of(const NodeId& node) const {
  if (loop_.is_current_thread()) return impl_->book.name_of(node);
  std::string name;
  const Status found = loop_.run_and_wait([&] { name = impl_->book.name_of(node); });
  if (!found.ok()) log_warn("cluster: no name of a node: {}", found.error().message);
  return name;
}

}  // namespace lockstep
