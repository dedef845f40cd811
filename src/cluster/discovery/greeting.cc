#include "cluster/discovery/greeting.h"

#include <cstdlib>
#include <utility>
#include <vector>

#include "base/byte_text.h"
#include "cluster/discovery/beacon_message.h"
#include "cluster/identity.h"
#include "cluster/json_fields.h"
#include "json/json.h"

namespace lockstep {
namespace {

constexpr std::string_view kGreetingMagic = "LSG1";
constexpr size_t kRangeBytes = 4;
constexpr size_t kProofBytes = kRangeBytes + std::tuple_size_v<Digest>;

Error stranger() {
  return {ErrorCode::kInvalidArgument, "it is not a member of this cluster"};
}

std::vector<std::byte> range_bytes(const ProtocolRange& range) {
  std::vector<std::byte> bytes;
  append_number(bytes, range.oldest);
  append_number(bytes, range.newest);
  return bytes;
}

}  // namespace

FirstFrame first_frame_kind(std::string_view frame) {
  if (!frame.starts_with(kGreetingMagic) || frame.size() == kGreetingMagic.size())
    return FirstFrame::kUnknown;
  switch (frame[kGreetingMagic.size()]) {
    case 'M':
      return FirstFrame::kMember;
    case 'J':
      return FirstFrame::kJoin;
    default:
      return FirstFrame::kUnknown;
  }
}

std::string first_frame_prefix(FirstFrame kind) {
  return std::string(kGreetingMagic) + (kind == FirstFrame::kMember ? 'M' : 'J');
}

void Greeting::call(FrameConnection connection, const Own& own, const Channel& channel,
                    std::optional<NodeId> expected, Judge judge, Done done) {
  const std::shared_ptr<Greeting> greeting(
      new Greeting(std::move(connection), own, std::move(judge), std::move(done)));
  greeting->is_caller_ = true;
  greeting->outcome_.channel = channel;
  greeting->start_call(expected);
}

void Greeting::answer(FrameConnection connection, const Own& own, std::string_view first_frame,
                      Judge judge, Done done) {
  const std::shared_ptr<Greeting> greeting(
      new Greeting(std::move(connection), own, std::move(judge), std::move(done)));
  greeting->start_answer(first_frame);
}

void Greeting::start_call(std::optional<NodeId> expected) {
  const auto id = NodeId::of_public_key(connection_.peer_key());
  if (!id.ok()) return finish(id.error());
  if (expected && id.value() != *expected) {
    return finish(Error{
        ErrorCode::kInvalidArgument,
        "node " + id.value().short_text() + " answers there, not node " + expected->short_text()});
  }
  outcome_.details.id = id.value();
  const auto proved = proof(true, own_.details.protocols);
  if (!proved.ok()) return finish(proved.error());
  std::string frame = first_frame_prefix(FirstFrame::kMember);
  frame += text_of(range_bytes(own_.details.protocols));
  frame += text_of(proved.value());
  connection_.send(frame);
  expect(&Greeting::on_listener_proof);
}

void Greeting::start_answer(std::string_view first_frame) {
  const auto id = NodeId::of_public_key(connection_.peer_key());
  if (!id.ok()) return finish(id.error());
  outcome_.details.id = id.value();
  first_frame.remove_prefix(first_frame_prefix(FirstFrame::kMember).size());
  if (auto checked = check_proof(true, first_frame); !checked.ok()) return finish(checked);
  const auto proved = proof(false, own_.details.protocols);
  if (!proved.ok()) return finish(proved.error());
  std::string frame(text_of(range_bytes(own_.details.protocols)));
  frame += text_of(proved.value());
  frame += own_details();
  connection_.send(frame);
  expect(&Greeting::on_caller_details);
}

void Greeting::expect(void (Greeting::*step)(std::string_view)) {
  connection_.set_events(
      {.on_frame = [self = shared_from_this(),
                    step](std::string frame) { (self.get()->*step)(frame); },
       .on_close = [self = shared_from_this()](Error error) { self->finish(std::move(error)); },
       .on_drained = {}});
}

void Greeting::on_listener_proof(std::string_view frame) {
  if (frame.size() < kProofBytes) return finish(stranger());
  if (auto checked = check_proof(false, frame.substr(0, kProofBytes)); !checked.ok()) {
    return finish(checked);
  }
  if (auto read = read_details(frame.substr(kProofBytes)); !read.ok()) return finish(read);
  if (auto fits = check_protocols(); !fits.ok()) {
    connection_.send(own_details());  // so that the other end can report our version too
    return finish(fits);
  }
  if (auto judged = judge_(outcome_.details, outcome_.channel); !judged.ok()) return finish(judged);
  connection_.send(own_details());
  expect(&Greeting::on_verdict);
}

void Greeting::on_caller_details(std::string_view frame) {
  if (auto read = read_details(frame); !read.ok()) return finish(read);
  if (auto fits = check_protocols(); !fits.ok()) return finish(fits);
  if (auto judged = judge_(outcome_.details, outcome_.channel); !judged.ok()) {
    return refuse(judged.error());
  }
  connection_.send(dump_json(JsonObject{{"accepted", true}}));
  finish(Ok{});
}

void Greeting::on_verdict(std::string_view frame) {
  const auto verdict = parse_json(frame);
  if (!verdict.ok()) return finish(verdict.error());
  const auto accepted = get_bool(verdict.value(), "accepted");
  if (accepted.ok() && accepted.value().value_or(false)) return finish(Ok{});
  auto reason = text_field(verdict.value(), "reason", 256);
  finish(Error{ErrorCode::kCancelled, reason.ok() ? reason.value() : "it refused"});
}

// Includes both certificates, so that a proof made for one node is invalid for another: the
// session's secret is bound only to the listener's (RFC 8446, section 7.1).
Result<Digest> Greeting::proof(bool of_caller, const ProtocolRange& range) const {
  const PublicKey& peer = connection_.peer_key();
  const PublicKey& caller = is_caller_ ? own_.key : peer;
  const PublicKey& listener = is_caller_ ? peer : own_.key;
  return hmac_sha256(own_.secret,
                     {bytes_of(of_caller ? "caller" : "listener"), connection_.session_secret(),
                      caller, listener, range_bytes(range)});
}

Status Greeting::check_proof(bool of_caller, std::string_view range_and_proof) {
  ByteReader reader(bytes_of(range_and_proof));
  ProtocolRange range;
  range.oldest = reader.number<uint16_t>();
  range.newest = reader.number<uint16_t>();
  Digest claimed{};
  reader.fill(claimed);
  if (!reader.is_complete()) return stranger();
  const Digest expected = TRY(proof(of_caller, range));
  if (!is_same_secret(expected, claimed)) return stranger();
  outcome_.details.protocols = range;
  return Ok{};
}

Status Greeting::check_protocols() const {
  if (common_protocol(own_.details.protocols, outcome_.details.protocols)) return Ok{};
  return Error{ErrorCode::kUnsupported,
               protocol_mismatch(outcome_.details.version, outcome_.details.protocols,
                                 own_.details.protocols)};
}

std::string Greeting::own_details() const {
  JsonObject details{{"name", own_.details.name},
                     {"version", own_.details.version},
                     {"port", own_.details.control_port},
                     {"run", std::to_string(own_.details.run)}};
  if (is_caller_) {
    details["channel"] = outcome_.channel.kind;
    details["purpose"] = outcome_.channel.purpose;
  }
  return dump_json(details);
}

Status Greeting::read_details(std::string_view json) {
  const Json details = TRY(parse_json(json));
  outcome_.details.name = TRY(text_field(details, "name", Identity::kNameBytesMax));
  outcome_.details.version = TRY(text_field(details, "version", kVersionBytesMax));
  const std::string run = TRY(text_field(details, "run", 20));
  outcome_.details.run = std::strtoull(run.c_str(), nullptr, 10);
  const int64_t port = TRY(number_field(details, "port", UINT16_MAX));
  if (!is_node_name(outcome_.details.name) || port == 0) {
    return Error{ErrorCode::kCorrupt, "its greeting has no valid name or port"};
  }
  outcome_.details.control_port = static_cast<uint16_t>(port);
  if (!is_caller_) {
    outcome_.channel.kind = TRY(text_field(details, "channel", Channel::kKindBytesMax));
    outcome_.channel.purpose = TRY(text_field(details, "purpose", Channel::kPurposeBytesMax));
  }
  outcome_.is_member = true;
  return Ok{};
}

void Greeting::refuse(Error error) {
  connection_.send(dump_json(JsonObject{{"accepted", false}, {"reason", error.message}}));
  finish(std::move(error));
}

void Greeting::finish(Status status) {
  const auto done = std::exchange(done_, nullptr);
  if (!done) return;
  const auto keep = shared_from_this();
  if (status.ok()) {
    connection_.trust();
    connection_.set_events({});
  } else {
    connection_.finish();
  }
  outcome_.status = std::move(status);
  done(std::move(connection_), std::move(outcome_));
}

}  // namespace lockstep
