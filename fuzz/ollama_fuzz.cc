// links: server
// Requests in Ollama's form: an accepted one can be shown to a template, and any other is refused
// with a sentence.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "server/chat/chat_messages.h"
#include "server/ollama/ollama_request.h"

namespace lockstep {
namespace {

template <class T>
bool is_taken(const ApiResult<T>& parsed) {
  if (parsed.ok()) return true;
  LOCKSTEP_CHECK(parsed.error().status == 400 && !parsed.error().message.empty());
  return false;
}

void check_options(const GenerationOptions& options) {
  LOCKSTEP_CHECK(options.n == 1);
  LOCKSTEP_CHECK(!options.max_tokens || *options.max_tokens > 0);
}

void parse_bodies(std::string_view body) {
  const auto chat = parse_ollama_chat(body);
  if (is_taken(chat)) {
    check_options(chat.value().chat.options);
    const Json& messages = chat.value().chat.messages;
    LOCKSTEP_CHECK(messages.is_null() == chat.value().is_empty);
    // The messages were converted to a conversation of OpenAI's API.
    if (!messages.is_null()) LOCKSTEP_CHECK(parse_messages(&messages).ok());
  }
  const auto generate = parse_ollama_generate(body);
  if (is_taken(generate)) {
    const OllamaRequest& request = generate.value();
    check_options(request.chat.options);
    LOCKSTEP_CHECK(request.text.has_value() == request.chat.messages.is_null());
    LOCKSTEP_CHECK(!request.suffix || !request.suffix->empty());
  }
  const auto embed = parse_ollama_embed(body);
  if (is_taken(embed)) LOCKSTEP_CHECK(!embed.value().model.empty());
  const auto embeddings = parse_ollama_embeddings(body);
  if (is_taken(embeddings)) LOCKSTEP_CHECK(embeddings.value().inputs.size() <= 1);
  (void)is_taken(parse_ollama_model(body));
}

}  // namespace
}  // namespace lockstep

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  lockstep::parse_bodies(text);
  const auto kept = lockstep::parse_keep_alive(lockstep::Json(text));
  if (kept.ok()) LOCKSTEP_CHECK(kept.value().count() >= -1);
  return 0;
}
