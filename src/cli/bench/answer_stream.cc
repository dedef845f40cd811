#include "cli/bench/answer_stream.h"

#include <fmt/core.h>

#include "cli/client/node_client.h"

namespace lockstep {
namespace {

bool has_text(const Json& object, std::string_view key) {
  const Json* value = find(object, key);
  return value != nullptr && value->is_string() && !value->get_string().empty();
}

bool brings_something(const Json& choice) {
  if (has_text(choice, "text")) return true;
  const Json* delta = find(choice, "delta");
  if (delta == nullptr) return false;
  return has_text(*delta, "content") || has_text(*delta, "reasoning_content") ||
         has_text(*delta, "reasoning") || !list_in(*delta, "tool_calls").empty();
}

std::string error_message_of(const Json& error) {
  if (error.is_string()) return std::string(error.get_string());
  const std::string message = text_in(error, "message");
  return message.empty() ? "an error without a message" : message;
}

}  // namespace

Result<int> AnswerStream::take(std::string_view piece) {
  int events = 0;
  size_t end = 0;
  while ((end = piece.find('\n')) != std::string_view::npos) {
    unfinished_ += piece.substr(0, end);
    piece.remove_prefix(end + 1);
    if (unfinished_.ends_with('\r')) unfinished_.pop_back();
    events += TRY(take_line(unfinished_)) ? 1 : 0;
    unfinished_.clear();
  }
  unfinished_ += piece;
  if (unfinished_.size() > kLineBytesMax) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("a line of the stream is longer than {} bytes", kLineBytesMax)};
  }
  return events;
}

Result<bool> AnswerStream::take_line(std::string_view line) {
  constexpr std::string_view kData = "data:";
  if (!line.starts_with(kData)) return false;  // a comment, or a field not needed here
  line.remove_prefix(kData.size());
  if (line.starts_with(' ')) line.remove_prefix(1);
  if (line == "[DONE]") {
    is_done_ = true;
    return false;
  }
  const auto parsed = parse_json(line);
  if (!parsed.ok() || !parsed.value().is_object()) {
    return Error{ErrorCode::kCorrupt, "an event of the stream is not a JSON object"};
  }
  const Json& event = parsed.value();
  const Json* error = find(event, "error");
  if (error != nullptr && !error->is_null()) error_ = error_message_of(*error);
  take_usage(event);
  bool brings = false;
  for (const Json& choice : list_in(event, "choices")) brings = brings || brings_something(choice);
  return brings;
}

void AnswerStream::take_usage(const Json& event) {
  const Json* usage = find(event, "usage");
  if (usage == nullptr || !usage->is_object()) return;
  const auto prompt = get_int(*usage, "prompt_tokens");
  const auto answer = get_int(*usage, "completion_tokens");
  if (prompt.ok() && prompt.value()) prompt_tokens_ = *prompt.value();
  if (answer.ok() && answer.value()) new_tokens_ = *answer.value();
}

}  // namespace lockstep
