#include "node/wire/event_codec.h"

#include <array>
#include <bit>
#include <type_traits>
#include <utility>

#include "base/utf8.h"
#include "node/wire/message_fields.h"

namespace lockstep {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers travel as they lie in memory");

using EventKind = RequestEvent::Kind;
constexpr size_t kKindCount = std::variant_size_v<EventKind>;
// An end: a finish reason, or from here on the code of an error.
constexpr int32_t kErrorsBegin = 0x100;

template <class Kind>
using Tag = std::type_identity<Kind>;

std::string body_of(const RequestEvent::Started& started) {
  return pack(int32_t{started.cached_tokens});
}

Result<RequestEvent::Started> read_body(Tag<RequestEvent::Started>, std::string_view bytes) {
  const int32_t cached_tokens = TRY(take_only<int32_t>(bytes, "start of a request"));
  if (cached_tokens < 0) return corrupt_message("start of a request");
  return RequestEvent::Started{cached_tokens};
}

std::string body_of(const RequestEvent::Token& token) {
  return pack(token.token);
}

Result<RequestEvent::Token> read_body(Tag<RequestEvent::Token>, std::string_view bytes) {
  return RequestEvent::Token{TRY(take_only<int32_t>(bytes, "token"))};
}

std::string body_of(const RequestEvent::Logprobs& logprobs) {
  return pack_span(std::span<const TokenLogprob>(logprobs.logprobs));
}

Result<RequestEvent::Logprobs> read_body(Tag<RequestEvent::Logprobs>, std::string_view bytes) {
  constexpr size_t kMost = (kTopLogprobsMax + 1) * sizeof(TokenLogprob);
  if (bytes.empty() || bytes.size() > kMost) return corrupt_message("list of logprobs");
  return RequestEvent::Logprobs{TRY(take_all<TokenLogprob>(bytes, "list of logprobs"))};
}

constexpr char kOfModel = 'm', kOfDraftLayer = 'd';

std::string body_of(const RequestEvent::Row& row) {
  return (row.is_draft ? kOfDraftLayer : kOfModel) + pack_span(std::span<const float>(row.values));
}

Result<RequestEvent::Row> read_body(Tag<RequestEvent::Row>, std::string_view bytes) {
  if (bytes.empty() || (bytes[0] != kOfModel && bytes[0] != kOfDraftLayer)) {
    return corrupt_message("row of numbers");
  }
  return RequestEvent::Row{TRY(take_all<float>(bytes.substr(1), "row of numbers")),
                           bytes[0] == kOfDraftLayer};
}

std::string body_of(const RequestEvent::Ended& ended) {
  if (ended.outcome.ok()) return pack(static_cast<int32_t>(ended.outcome.value()));
  const Error& error = ended.outcome.error();
  return pack(kErrorsBegin + static_cast<int32_t>(error.code)) + cut_sentence(error.message);
}

Result<RequestEvent::Ended> read_body(Tag<RequestEvent::Ended>, std::string_view bytes) {
  if (bytes.size() < sizeof(int32_t)) return corrupt_message("end of a request");
  const int32_t number = take<int32_t>(bytes);
  if (number >= kErrorsBegin && number < kErrorsBegin + kErrorCodeCount) {
    if (bytes.size() > kErrorBytesMax) return corrupt_message("error of a request");
    return RequestEvent::Ended{
        Error{static_cast<ErrorCode>(number - kErrorsBegin), std::string(bytes)}};
  }
  const bool is_reason = number >= 0 && number <= static_cast<int32_t>(FinishReason::kLength);
  if (!is_reason || !bytes.empty()) return corrupt_message("end of a request");
  return RequestEvent::Ended{static_cast<FinishReason>(number)};
}

std::string body_of(const RequestEvent::Busy&) {
  return {};
}

Result<RequestEvent::Busy> read_body(Tag<RequestEvent::Busy>, std::string_view bytes) {
  if (!bytes.empty()) return corrupt_message("refusal of a request");
  return RequestEvent::Busy{};
}

std::string body_of(const RequestEvent::Progress& progress) {
  return pack(int32_t{progress.done}, int32_t{progress.cached_tokens});
}

Result<RequestEvent::Progress> read_body(Tag<RequestEvent::Progress>, std::string_view bytes) {
  if (bytes.size() != 2 * sizeof(int32_t)) return corrupt_message("progress of a prompt");
  const int32_t done = take<int32_t>(bytes);
  const int32_t cached_tokens = take<int32_t>(bytes);
  if (done < 0 || cached_tokens < 0) return corrupt_message("progress of a prompt");
  return RequestEvent::Progress{done, cached_tokens};
}

std::string body_of(const RequestEvent::Paused& paused) {
  return cut_sentence(paused.reason);
}

Result<RequestEvent::Paused> read_body(Tag<RequestEvent::Paused>, std::string_view bytes) {
  if (bytes.size() > kErrorBytesMax) return corrupt_message("pause of a request");
  return RequestEvent::Paused{std::string(bytes)};
}

std::string body_of(const RequestEvent::Resumed& resumed) {
  return pack(int32_t{resumed.recomputed_tokens});
}

Result<RequestEvent::Resumed> read_body(Tag<RequestEvent::Resumed>, std::string_view bytes) {
  const int32_t tokens = TRY(take_only<int32_t>(bytes, "resumption of a request"));
  if (tokens < 0) return corrupt_message("resumption of a request");
  return RequestEvent::Resumed{tokens};
}

template <size_t kIndex>
Result<EventKind> read_kind(std::string_view bytes) {
  return EventKind(std::in_place_index<kIndex>,
                   TRY(read_body(Tag<std::variant_alternative_t<kIndex, EventKind>>(), bytes)));
}

using ReadKind = Result<EventKind> (*)(std::string_view bytes);

template <size_t... kIndices>
constexpr std::array<ReadKind, kKindCount> readers(std::index_sequence<kIndices...>) {
  return {read_kind<kIndices>...};
}

constexpr std::array<ReadKind, kKindCount> kReaders =
    readers(std::make_index_sequence<kKindCount>());

}  // namespace

std::string cut_sentence(std::string_view sentence) {
  std::string cut(sentence.substr(0, kErrorBytesMax));
  if (sentence.size() > cut.size()) cut.resize(cut.size() - incomplete_utf8_tail(cut));
  return cut;
}

std::string encode_event(const RequestEvent& event) {
  std::string bytes = pack(static_cast<uint8_t>(event.what.index()), event.id);
  bytes += std::visit([](const auto& kind) { return body_of(kind); }, event.what);
  return bytes;
}

Result<RequestEvent> decode_event(std::string_view bytes) {
  if (bytes.size() < sizeof(uint8_t) + sizeof(uint64_t)) return corrupt_message("event");
  const uint8_t number = take<uint8_t>(bytes);
  if (number >= kKindCount) return corrupt_message("kind of event");
  const uint64_t id = take<uint64_t>(bytes);
  EventKind what = TRY(kReaders[number](bytes));
  return RequestEvent{id, std::move(what)};
}

}  // namespace lockstep
