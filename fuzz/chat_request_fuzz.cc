// links: server
// Any body through the parsers of the chat APIs; the first byte chooses which. Requests that they
// accept have messages that a template can read, and a refusal has a sentence for the client.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/utf8.h"
#include "server/anthropic/anthropic_request.h"
#include "server/chat/chat_prompt.h"
#include "server/openai/openai_chat.h"
#include "server/openai/responses_request.h"

using namespace lockstep;

namespace {

void check_request(const ChatRequest& request) {
  LOCKSTEP_CHECK(request.messages.is_array() && !request.messages.get_array().empty());
  LOCKSTEP_CHECK(request.tools.is_null() || !request.tools.get_array().empty());
  for (const Json& message : request.messages.get_array()) {
    const Json* role = find(message, "role");
    LOCKSTEP_CHECK(role != nullptr && role->is_string());
    const Json* calls = find(message, "tool_calls");
    LOCKSTEP_CHECK(calls == nullptr || !calls->get_array().empty());
  }
  LOCKSTEP_CHECK(is_valid_utf8(plain_conversation(request.messages)));
  for (const std::string& name : request.options.ignored) {
    LOCKSTEP_CHECK(!name.empty() && name.find_first_of("\r\n") == std::string::npos);
  }
}

void check_error(const ApiError& error) {
  LOCKSTEP_CHECK(error.status == 400 && !error.message.empty());
  LOCKSTEP_CHECK(is_valid_utf8(error_json(error)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] == 'm' || data[0] == 'c') {
    const auto route = data[0] == 'm' ? MessagesRoute::kMessages : MessagesRoute::kCountTokens;
    const auto parsed = parse_messages_request(body, route);
    parsed.ok() ? check_request(parsed.value().chat) : check_error(parsed.error());
  } else if (data[0] == 'r') {
    const auto parsed = parse_responses_request(body);
    parsed.ok() ? check_request(parsed.value().chat) : check_error(parsed.error());
  } else {
    const auto parsed = parse_chat_request(body);
    parsed.ok() ? check_request(parsed.value()) : check_error(parsed.error());
  }
  return 0;
}
