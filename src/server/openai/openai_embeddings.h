// POST /v1/embeddings: parses the request's body (pure) and answers it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/http/http_server.h"
#include "server/request/text_inputs.h"

namespace lockstep {

class ApiContext;

inline constexpr size_t kEmbeddingInputsMax = 2048;  // as OpenAI's
inline constexpr int kEmbeddingDimensionsMax = 65536;

struct EmbeddingRequest {
  std::string model;  // empty: the only one
  std::vector<TextInput> inputs;
  bool is_base64 = false;
  std::optional<int> dimensions;     // keeps only the first ones
  std::vector<std::string> ignored;  // unknown fields of the request
};

ApiResult<EmbeddingRequest> parse_embedding_request(std::string_view body);

// Scaled to length 1; zeros stay zeros. NaN and infinity are errors.
ApiResult<std::vector<float>> unit_vector(std::span<const float> values);

void serve_embeddings(ApiContext& context, const HttpRequest& request, const HttpReply& reply);

}  // namespace lockstep
