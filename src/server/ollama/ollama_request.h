// Requests in Ollama's form (its api.md) as structs. Pure. Features of Ollama that lockstep lacks
// are refused by name.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json/json.h"
#include "server/chat/chat_plan.h"

namespace lockstep {

// POST /api/chat and /api/generate.
struct OllamaRequest {
  ChatRequest chat{};     // for generate: its system message and prompt, as messages
  bool is_empty = false;  // no text: only load or unload the model
  std::optional<std::chrono::milliseconds> keep_alive{};  // negative: for ever
  std::optional<std::string> text{};    // to continue verbatim; `chat` then has no messages
  std::optional<std::string> suffix{};  // that follows `text` and the answer
};

struct OllamaEmbedRequest {
  std::string model{};
  std::vector<std::string> inputs{};
  bool is_single = false;  // of /api/embeddings: one vector, not a list
  bool truncates = true;   // cuts texts that are too long
  std::optional<int> dimensions{};
  std::optional<std::chrono::milliseconds> keep_alive{};  // negative: for ever
  std::vector<std::string> ignored{};
};

ApiResult<OllamaRequest> parse_ollama_chat(std::string_view body);
ApiResult<OllamaRequest> parse_ollama_generate(std::string_view body);
ApiResult<OllamaEmbedRequest> parse_ollama_embed(std::string_view body);       // /api/embed
ApiResult<OllamaEmbedRequest> parse_ollama_embeddings(std::string_view body);  // /api/embeddings
// The name in {"model": ...}, or "name", which older clients send.
ApiResult<std::string> parse_ollama_model(std::string_view body);

// "5m", "1h30m", "-1s" or a number of seconds. The result is negative for "forever".
ApiResult<std::chrono::milliseconds> parse_keep_alive(const Json& value);

}  // namespace lockstep
