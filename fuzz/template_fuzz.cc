// links: chat
// Any template over a small conversation, and any conversation (after a NUL byte) through it: it
// ends within its limits, and its output is UTF-8 in non-empty pieces.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/utf8.h"
#include "chat/chat_template.h"
#include "chat/normalise.h"

using namespace lockstep;

namespace {

constexpr std::string_view kMessages =
    R"([{"role":"system","content":"Be brief."},{"role":"user","content":"Hé <|x|>"},)"
    R"({"role":"assistant","content":null,"tool_calls":[{"id":"abcdef123","type":"function",)"
    R"("function":{"name":"f","arguments":{"a":[1,2.5,null,true]}}}]},)"
    R"({"role":"tool","content":[{"type":"text","text":"3"}]}])";

void check_rendering(const ChatTemplate& chat_template, const Json& messages) {
  ChatTemplateInput input;
  input.messages = &messages;
  const auto pieces = chat_template.render(input);
  if (!pieces.ok()) return;
  for (const PromptPiece& piece : pieces.value()) {
    LOCKSTEP_CHECK(!piece.text.empty());
    LOCKSTEP_CHECK(is_valid_utf8(piece.text));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const size_t end = std::min(all.find('\0'), all.size());
  const auto chat_template = ChatTemplate::parse(all.substr(0, end));
  if (!chat_template.ok()) return 0;
  auto messages = parse_json(end < size ? all.substr(end + 1) : kMessages);
  if (!messages.ok()) return 0;
  check_rendering(chat_template.value(), messages.value());
  TemplateNeeds needs;
  needs.text_content = true;
  needs.system_in_user = true;
  needs.arguments = ArgumentsForm::kObject;
  check_rendering(chat_template.value(), normalised_messages(messages.value(), needs));
  return 0;
}
