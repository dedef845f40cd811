// POST /v1/embeddings: the request's body as a struct (pure), and its answer.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/http_server.h"
#include "server/text_inputs.h"

namespace lockstep {

class ApiContext;

inline constexpr size_t kEmbeddingInputsMax = 2048;  // as OpenAI's
inline constexpr int kEmbeddingDimensionsMax = 65536;

struct EmbeddingRequest {
  std::string model;  // empty: the only one
  std::vector<TextInput> inputs;
  bool is_base64 = false;
  std::optional<int> dimensions;     // only the first of them
  std::vector<std::string> ignored;  // fields of the request that mean nothing to us
};

ApiResult<EmbeddingRequest> parse_embedding_request(std::string_view body);

// Of length 1; zeros stay zeros. Numbers that are none are an error.
ApiResult<std::vector<float>> unit_vector(std::span<const float> values);

void serve_embeddings(ApiContext& context, const HttpRequest& request, const HttpReply& reply);

}  // namespace lockstep
