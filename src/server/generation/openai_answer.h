// The answers of OpenAI's text APIs, whole or streamed; a ChoiceWriter formats each choice. Used by
// openai_completions.cc and openai_chat.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "json/json.h"
#include "net/http/http_server.h"
#include "server/generation/choice_writer.h"
#include "server/generation/generation.h"
#include "server/generation/generation_options.h"
#include "server/streams/event_stream.h"

namespace lockstep {

struct OpenAiFormat {
  const char* id_prefix;
  const char* whole_object;
  const char* chunk_object;
};

using ChoiceWriters = std::vector<std::unique_ptr<ChoiceWriter>>;

struct OpenAiAnswer {
  std::string model;
  std::string fingerprint;
  ChoiceWriters choices;
  bool is_streamed = false;
  AnswerExtras extras = {};
  std::vector<std::string> ignored;   // sent in the header x-lockstep-ignored-fields
  std::vector<std::string> warnings;  // sent in the header x-lockstep-warnings
};

// Limit of a header that quotes the request; longer values are cut, and characters that a header
// cannot have are replaced. Clients and proxies refuse answers with a long head.
inline constexpr size_t kHeaderBytesMax = 2'000;
std::vector<std::pair<std::string, std::string>> ignored_fields_header(
    const std::vector<std::string>& ignored);
std::vector<std::pair<std::string, std::string>> warnings_header(
    const std::vector<std::string>& warnings);

// `events` is where a streamed answer goes, `reply` where a whole one does.
std::unique_ptr<GenerationSink> make_openai_answer(const OpenAiFormat& format, OpenAiAnswer answer,
                                                   HttpReply reply,
                                                   std::unique_ptr<EventStream> events);

}  // namespace lockstep
