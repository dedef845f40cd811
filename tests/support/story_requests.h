// Requests to the model stories260K whose answers are compared bit for bit. Their tokens are in the
// vocabularies of the larger golden models too.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"

namespace lockstep {

inline const std::string kStories = std::string(LOCKSTEP_SOURCE_DIR) + "/models/stories260K";

inline std::vector<int32_t> story_text(int size, int begin, int different = 300) {
  std::vector<int32_t> tokens{1};
  for (int i = 1; i < size; ++i) tokens.push_back(3 + (begin + i * 37) % different);
  return tokens;
}

// Tokens that the smallest vocabulary has.
inline std::vector<int32_t> text_of_any_model(int size, int begin) {
  return story_text(size, begin, 180);
}

inline GenerateRequest generation_of(std::vector<int32_t> prompt, int max_tokens) {
  GenerateRequest request;
  request.prompt = std::move(prompt);
  request.max_tokens = max_tokens;
  request.sampling = {.temperature = 1, .seed = 5};
  return request;
}

// For the bits of the last hidden state.
inline GenerateRequest embedding_of(std::vector<int32_t> prompt) {
  GenerateRequest request;
  request.prompt = std::move(prompt);
  request.max_tokens = 0;
  request.pooling = Pooling::kLast;
  return request;
}

}  // namespace lockstep
