// Requests in Ollama's form (its api.md) as structs. Pure. What Ollama defines and lockstep cannot
// do is refused by name.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json/json.h"
#include "server/chat_plan.h"

namespace lockstep {

// POST /api/chat and /api/generate.
struct OllamaRequest {
  ChatRequest chat{};     // of generate: its system message and prompt, as messages
  bool is_empty = false;  // nothing is to be said: the model is only to be there
  std::optional<std::chrono::milliseconds> keep_alive{};  // negative: for ever
  std::optional<std::string> text{};    // to be continued as it is; then `chat` has no messages
  std::optional<std::string> suffix{};  // that follows the answer behind `text`
};

struct OllamaEmbedRequest {
  std::string model{};
  std::vector<std::string> inputs{};
  bool is_single = false;  // of /api/embeddings: one vector, not a list
  bool truncates = true;   // texts that are too long are cut
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

// Less than 0: for ever. "5m", "1h30m", "-1s" or a number of seconds.
ApiResult<std::chrono::milliseconds> parse_keep_alive(const Json& value);

}  // namespace lockstep
