// Answers in Ollama's form: one JSON object, or one per line (NDJSON) as the text is generated.
// Used by ollama_routes.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "net/http/http_server.h"
#include "server/chat/chat_writer.h"

namespace lockstep {

inline constexpr const char* kOllamaJsonContentType = "application/json; charset=utf-8";
inline constexpr const char* kNdjsonContentType = "application/x-ndjson";

struct OllamaForm {
  std::string model{};
  bool is_chat = true;  // "message"; else "response"
  bool is_streamed = true;
  std::vector<std::pair<std::string, std::string>> headers{};
};

std::unique_ptr<ChatWriter> make_ollama_writer(OllamaForm form);

// An answer without text: the model is loaded ("load"), or about to be unloaded ("unload").
HttpResponse ollama_loaded(const OllamaForm& form, std::string_view done_reason);

// "2026-01-31T12:00:00.123456Z"
std::string rfc3339(int64_t unix_us);
int64_t unix_now_us();

}  // namespace lockstep
