#include "cluster/join/join_host.h"

#include <chrono>
#include <utility>

#include "base/byte_text.h"
#include "base/log.h"
#include "cluster/join/join_frames.h"
#include "cluster/node_id.h"

namespace lockstep {
namespace {

constexpr std::chrono::seconds kMargin{5};  // for the frames after the PIN is typed

uint64_t system_seconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::seconds>(now).count());
}

}  // namespace

struct JoinHost::Impl : std::enable_shared_from_this<Impl> {
  // One asking machine.
  struct Join {
    FrameConnection connection;
    std::string asker;
    uint64_t pin_number = 0;
    std::optional<Spake2> proof;
  };

  explicit Impl(Options chosen) : options(std::move(chosen)) {}

  void begin(const std::shared_ptr<Join>& join, std::string_view first_frame);
  void begin_pin(const std::shared_ptr<Join>& join);
  Status check_token(Join& join, const JoinRequestFrame& request);
  void on_frame(const std::shared_ptr<Join>& join, std::string_view text);
  Status on_share(Join& join, const JoinFrame& frame);
  Status on_confirmation(Join& join, const JoinFrame& frame);
  void refuse(Join& join, const Error& error);
  uint64_t now_s() const {
    return options.wall_clock_s ? options.wall_clock_s() : system_seconds();
  }

  Options options;
  PinDesk desk;
  uint64_t joined_count = 0;
  uint64_t refused_count = 0;
};

JoinHost::JoinHost(Options options) : impl_(std::make_shared<Impl>(std::move(options))) {}
JoinHost::~JoinHost() = default;

void JoinHost::take(FrameConnection connection, std::string_view first_frame) {
  auto join = std::make_shared<Impl::Join>();
  join->connection = std::move(connection);
  impl_->begin(join, first_frame);
}

void JoinHost::Impl::begin(const std::shared_ptr<Join>& join, std::string_view first_frame) {
  const auto request = parse_join_request(first_frame);
  const auto id = NodeId::of_public_key(join->connection.peer_key());
  if (!request.ok()) return refuse(*join, request.error());
  if (!id.ok()) return refuse(*join, id.error());
  join->asker = "'" + request.value().name + "' (node " + id.value().short_text() + ", " +
                join->connection.peer_host() + ")";
  if (!common_protocol(kProtocols, request.value().protocols)) {
    return refuse(
        *join, {ErrorCode::kUnsupported,
                protocol_mismatch(request.value().version, request.value().protocols, kProtocols)});
  }
  if (!request.value().with_token) return begin_pin(join);
  const auto checked = check_token(*join, request.value());
  if (!checked.ok()) refuse(*join, checked.error());
}

void JoinHost::Impl::begin_pin(const std::shared_ptr<Join>& join) {
  auto pin = desk.issue(join->asker, PinDesk::Clock::now());
  if (!pin.ok()) return refuse(*join, pin.error());
  join->pin_number = pin.value().number;
  const std::string& digits = pin.value().pin;
  log_info("cluster: {} asks to join: type PIN {} {} there within 2 minutes, or ignore this",
           join->asker, digits.substr(0, 4), digits.substr(4));
  join->connection.set_trust_timeout(PinDesk::kLifetime + kMargin);
  join->connection.set_events(
      {.on_frame = [self = shared_from_this(),
                    join](std::string frame) { self->on_frame(join, frame); },
       .on_close = [self = shared_from_this(),
                    join](const Error&) { self->desk.withdraw(join->pin_number); },
       .on_drained = {}});
  join->connection.send(encode_join_frame(
      {.state = "pin", .name = options.name, .cluster = options.cluster.id().text()}));
}

Status JoinHost::Impl::check_token(Join& join, const JoinRequestFrame& request) {
  const Digest secret =
      TRY(join_token_secret(options.cluster, request.token_expires_s, request.token_number));
  const Digest& session = join.connection.session_secret();
  const Digest expected = TRY(token_proof(secret, true, session));
  if (!is_same_secret(expected, request.token_confirmation)) {
    return Error{
        ErrorCode::kInvalidArgument,
        "the token is not from this cluster: create one with `lockstep cluster token` here"};
  }
  if (request.token_expires_s <= now_s()) {
    return Error{ErrorCode::kInvalidArgument,
                 "the token has expired: create a new one with `lockstep cluster token`"};
  }
  const Digest own = TRY(token_proof(secret, false, session));
  log_info("cluster: {} joined with a token", join.asker);
  ++joined_count;
  join.connection.send(encode_join_frame({.name = options.name,
                                          .cluster = options.cluster.id().text(),
                                          .confirmation = std::string(text_of(own)),
                                          .key = options.cluster.text()}));
  join.connection.finish();
  return Ok{};
}

void JoinHost::Impl::on_frame(const std::shared_ptr<Join>& join, std::string_view text) {
  const auto frame = parse_join_frame(text);
  if (!frame.ok()) return refuse(*join, frame.error());
  const auto done =
      join->proof ? on_confirmation(*join, frame.value()) : on_share(*join, frame.value());
  if (!done.ok()) refuse(*join, done.error());
}

// From here on the PIN is invalid, whatever the other end does.
Status JoinHost::Impl::on_share(Join& join, const JoinFrame& frame) {
  const auto pin = desk.take(join.pin_number, PinDesk::Clock::now());
  if (!pin) {
    return Error{ErrorCode::kTimeout, "the PIN has expired: ask for a new one"};
  }
  join.proof = TRY(start_pin_proof(Spake2::Side::kB, join.connection.peer_key(), options.key,
                                   join.connection.session_secret(), *pin));
  TRY(join.proof->finish(bytes_of(frame.share)));
  join.connection.set_trust_timeout(kMargin);
  join.connection.send(encode_join_frame({.share = std::string(text_of(join.proof->share()))}));
  return Ok{};
}

Status JoinHost::Impl::on_confirmation(Join& join, const JoinFrame& frame) {
  if (!is_same_secret(join.proof->expected_confirmation(), bytes_of(frame.confirmation))) {
    return Error{ErrorCode::kInvalidArgument,
                 "the PIN was wrong: each is valid for one attempt, so ask for a new one"};
  }
  log_info("cluster: {} joined with a PIN", join.asker);
  ++joined_count;
  join.connection.send(
      encode_join_frame({.confirmation = std::string(text_of(join.proof->confirmation())),
                         .key = options.cluster.text()}));
  join.connection.finish();
  return Ok{};
}

void JoinHost::Impl::refuse(Join& join, const Error& error) {
  ++refused_count;
  desk.withdraw(join.pin_number);
  log_info("cluster: {} did not join: {}", join.asker.empty() ? "a machine" : join.asker,
           error.message);
  join.connection.send(encode_join_frame({.state = "refused", .reason = error.message}));
  join.connection.finish();
}

std::vector<PinDesk::Pending> JoinHost::pending_pins() {
  return impl_->desk.pending(PinDesk::Clock::now());
}

uint64_t JoinHost::joined_count() const {
  return impl_->joined_count;
}

uint64_t JoinHost::refused_count() const {
  return impl_->refused_count;
}

}  // namespace lockstep
