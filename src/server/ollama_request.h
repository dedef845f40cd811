// Requests in Ollama's form (its api.md) as structs. Pure. What Ollama defines and lockstep cannot
// do is refused by name.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json/json.h"
#include "server/chat_plan.h"

namespace lockstep {

// POST /api/chat and /api/generate.
struct OllamaRequest {
  ChatRequest chat{};                   // of generate: its system message and prompt, as messages
  bool is_empty = false;                // nothing is to be said: the model is only to be there
  bool is_unload = false;               // nothing is to be said, and it is to go ("keep_alive": 0)
  std::optional<std::string> text{};    // to be continued as it is; then `chat` has no messages
  std::optional<std::string> suffix{};  // that follows the answer behind `text`
};

struct OllamaEmbedRequest {
  std::string model{};
  std::vector<std::string> inputs{};
  bool is_single = false;  // of /api/embeddings: one vector, not a list
  bool truncates = true;   // texts that are too long are cut
  std::optional<int> dimensions{};
  std::vector<std::string> ignored{};
};

ApiResult<OllamaRequest> parse_ollama_chat(std::string_view body);
ApiResult<OllamaRequest> parse_ollama_generate(std::string_view body);
ApiResult<OllamaEmbedRequest> parse_ollama_embed(std::string_view body);       // /api/embed
ApiResult<OllamaEmbedRequest> parse_ollama_embeddings(std::string_view body);  // /api/embeddings
// The name in {"model": ...}, or "name", which older clients send.
ApiResult<std::string> parse_ollama_model(std::string_view body);

// Seconds; less than 0: for ever. "5m", "1h30m", "-1s" or a number.
ApiResult<double> parse_keep_alive(const Json& value);

}  // namespace lockstep
