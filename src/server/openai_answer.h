// The answers of OpenAI's text APIs, whole or streamed, for any of their two shapes of a choice.
// Used by openai_completions.cc and openai_chat.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "json/json.h"
#include "net/http_server.h"
#include "server/generation.h"

namespace lockstep {

struct OpenAiFormat {
  const char* id_prefix;
  const char* whole_object;
  const char* chunk_object;
  JsonObject (*first_choice)(size_t index);  // opens a choice of a stream; null: not needed
  JsonObject (*text_choice)(size_t index, std::string_view text);
  JsonObject (*end_choice)(size_t index, std::string_view finish_reason);
  JsonObject (*whole_choice)(size_t index, std::string_view text, std::string_view finish_reason);
};

struct OpenAiAnswer {
  std::string model;
  std::string fingerprint;
  size_t choice_count = 1;
  bool is_streamed = false;
  bool includes_usage = false;
  std::vector<std::string> ignored;  // told in the header x-lockstep-ignored-fields
};

std::vector<std::pair<std::string, std::string>> ignored_fields_header(
    const std::vector<std::string>& ignored);

std::unique_ptr<GenerationSink> make_openai_answer(const OpenAiFormat& format, OpenAiAnswer answer,
                                                   HttpReply reply);

}  // namespace lockstep
