#include "node/disks/disk_messages.h"

#include <utility>

#include "base/named_values.h"
#include "base/utf8.h"

namespace lockstep {
namespace {

constexpr size_t kSentenceBytesMax = 1000;

constexpr NamedValues<DiskAsk::Kind, 2> kDiskAsks{
    {{DiskAsk::Kind::kList, "list"}, {DiskAsk::Kind::kRemove, "remove"}}};

// Those that a client acts on; any other is told as kInternal.
constexpr NamedValues<ErrorCode, 5> kDiskErrors{{{ErrorCode::kInvalidArgument, "invalid"},
                                                 {ErrorCode::kNotFound, "not_found"},
                                                 {ErrorCode::kExhausted, "busy"},
                                                 {ErrorCode::kTimeout, "timeout"},
                                                 {ErrorCode::kInternal, "internal"}}};

Error invalid_disk_message() {
  return {ErrorCode::kCorrupt, "the node sent an invalid message about its disk"};
}

Result<std::string> message_text(const Json& json, std::string_view key, size_t bytes_max) {
  const auto text = get_string(json, key);
  if (text.ok() && text.value() && text.value()->size() <= bytes_max) return *text.value();
  return invalid_disk_message();
}

}  // namespace

std::string encode_disk_ask(const DiskAsk& ask) {
  JsonObject json{{"ask", name_in(kDiskAsks, ask.kind)}};
  if (ask.kind == DiskAsk::Kind::kRemove) json["model"] = ask.model;
  return dump_json(json);
}

Result<DiskAsk> decode_disk_ask(std::string_view frame) {
  const auto json = parse_untrusted_json(frame);
  if (!json.ok()) return invalid_disk_message();
  const std::string kind = TRY(message_text(json.value(), "ask", kDiskTextBytesMax));
  const auto known = value_named(kDiskAsks, kind, "question");
  if (!known.ok()) return invalid_disk_message();
  DiskAsk ask{.kind = known.value()};
  if (ask.kind == DiskAsk::Kind::kRemove) {
    ask.model = TRY(message_text(json.value(), "model", kDiskTextBytesMax));
  }
  return ask;
}

std::string encode_disk_answer(const DiskAsk& ask, const Result<DiskAnswer>& answer) {
  if (!answer.ok()) {
    const std::string_view known = name_in(kDiskErrors, answer.error().code);
    const std::string_view name =
        known.empty() ? name_in(kDiskErrors, ErrorCode::kInternal) : known;
    const std::string sentence =
        replace_invalid_utf8(answer.error().message.substr(0, kSentenceBytesMax));
    return dump_json(JsonObject{{"error", name}, {"sentence", sentence}});
  }
  if (ask.kind == DiskAsk::Kind::kList) return dump_json(disk_json(answer.value().disk));
  return dump_json(JsonObject{{"removed_bytes", answer.value().removed_bytes}});
}

Result<DiskAnswer> decode_disk_answer(const DiskAsk& ask, std::string_view frame) {
  const auto json = parse_untrusted_json(frame);
  if (!json.ok()) return invalid_disk_message();
  if (find(json.value(), "error") != nullptr) {
    const std::string name = TRY(message_text(json.value(), "error", kSentenceBytesMax));
    const std::string sentence = TRY(
        message_text(json.value(), "sentence", kReplacementCharacter.size() * kSentenceBytesMax));
    const auto code = value_named(kDiskErrors, name, "error");
    return Error{code.ok() ? code.value() : ErrorCode::kInternal, sentence};
  }
  DiskAnswer answer;
  if (ask.kind == DiskAsk::Kind::kList) {
    answer.disk = TRY(read_disk_json(json.value()));
    return answer;
  }
  const Json* bytes = find(json.value(), "removed_bytes");
  const auto count = bytes == nullptr ? std::nullopt : number_of<uint64_t>(*bytes);
  if (!count) return invalid_disk_message();
  answer.removed_bytes = *count;
  return answer;
}

}  // namespace lockstep
