#include "cluster/join/join_frames.h"

#include <array>
#include <charconv>
#include <vector>

#include "base/byte_text.h"
#include "base/hex.h"
#include "cluster/discovery/beacon_message.h"
#include "cluster/discovery/greeting.h"
#include "cluster/identity.h"
#include "cluster/sentences.h"
#include "json/json.h"

namespace lockstep {
namespace {

Error bad_frame() {
  return {ErrorCode::kCorrupt, "the other end's frames are not valid join frames"};
}

Result<std::string> text_in(const Json& object, std::string_view key) {
  auto text = TRY(get_string(object, key));
  return text ? std::move(*text) : std::string();
}

Result<std::string> bytes_in(const Json& object, std::string_view key) {
  const std::string hex = TRY(text_in(object, key));
  std::vector<std::byte> bytes(hex.size() / 2);
  if (!from_hex(hex, bytes)) return bad_frame();
  return std::string(text_of(bytes));
}

Status fill_from(const Json& object, std::string_view key, std::span<std::byte> out) {
  const std::string hex = TRY(text_in(object, key));
  if (!from_hex(hex, out)) return bad_frame();
  return Ok{};
}

}  // namespace

std::string encode_join_request(const JoinRequestFrame& request) {
  JsonObject object{{"name", request.name},
                    {"version", request.version},
                    {"oldest", request.protocols.oldest},
                    {"newest", request.protocols.newest},
                    {"with", request.with_token ? "token" : "pin"}};
  if (request.with_token) {
    object["expires"] = std::to_string(request.token_expires_s);
    object["number"] = to_hex(request.token_number);
    object["confirmation"] = to_hex(request.token_confirmation);
  }
  return first_frame_prefix(FirstFrame::kJoin) + dump_json(object);
}

Result<JoinRequestFrame> parse_join_request(std::string_view frame) {
  const std::string prefix = first_frame_prefix(FirstFrame::kJoin);
  if (!frame.starts_with(prefix)) return bad_frame();
  const Json object = TRY(parse_json(frame.substr(prefix.size())));
  JoinRequestFrame request;
  request.name = TRY(text_in(object, "name"));
  request.version = TRY(text_in(object, "version"));
  const int64_t oldest = TRY(get_int(object, "oldest")).value_or(-1);
  const int64_t newest = TRY(get_int(object, "newest")).value_or(-1);
  const std::string with = TRY(text_in(object, "with"));
  request.with_token = with == "token";
  if (!is_node_name(request.name) || request.version.empty() ||
      request.version.size() > kVersionBytesMax || !is_node_name(request.version) || oldest < 0 ||
      newest > 65535 || oldest > newest || (!request.with_token && with != "pin")) {
    return bad_frame();
  }
  request.protocols = {static_cast<uint16_t>(oldest), static_cast<uint16_t>(newest)};
  if (request.with_token) {
    const std::string expires = TRY(text_in(object, "expires"));
    const auto [end, error] =
        std::from_chars(expires.data(), expires.data() + expires.size(), request.token_expires_s);
    if (error != std::errc() || end != expires.data() + expires.size()) return bad_frame();
    TRY(fill_from(object, "number", request.token_number));
    TRY(fill_from(object, "confirmation", request.token_confirmation));
  }
  return request;
}

std::string encode_join_frame(const JoinFrame& frame) {
  JsonObject object;
  const auto add = [&](std::string_view key, const std::string& text) {
    if (!text.empty()) object[key] = text;
  };
  add("state", frame.state);
  add("reason", frame.reason);
  add("name", frame.name);
  add("cluster", frame.cluster);
  add("share", to_hex(bytes_of(frame.share)));
  add("confirmation", to_hex(bytes_of(frame.confirmation)));
  add("key", frame.key);
  return dump_json(object);
}

Result<JoinFrame> parse_join_frame(std::string_view text) {
  const Json object = TRY(parse_json(text));
  JoinFrame frame;
  frame.state = TRY(text_in(object, "state"));
  frame.reason = TRY(text_in(object, "reason"));
  frame.name = TRY(text_in(object, "name"));
  frame.cluster = TRY(text_in(object, "cluster"));
  // These three are shown to people before the other end has proved anything.
  if (!is_plain_text(frame.reason) || (!frame.name.empty() && !is_node_name(frame.name)) ||
      !is_plain_text(frame.cluster)) {
    return bad_frame();
  }
  frame.share = TRY(bytes_in(object, "share"));
  frame.confirmation = TRY(bytes_in(object, "confirmation"));
  frame.key = TRY(text_in(object, "key"));
  return frame;
}

Result<Spake2> start_pin_proof(Spake2::Side side, const PublicKey& joiner, const PublicKey& member,
                               const Digest& session_secret, std::string_view pin) {
  const std::string identity_a = "joiner " + to_hex(joiner);
  const std::string identity_b = "member " + to_hex(member);
  return Spake2::start({side, identity_a, identity_b, session_secret}, pin);
}

Result<Digest> token_proof(const Digest& token_secret, bool of_joiner,
                           const Digest& session_secret) {
  return hmac_sha256(token_secret, {bytes_of(of_joiner ? "joiner" : "member"), session_secret});
}

}  // namespace lockstep
