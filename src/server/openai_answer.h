// The answers of OpenAI's text APIs, whole or streamed; what a choice looks like its ChoiceWriter
// says. Used by openai_completions.cc and openai_chat.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "json/json.h"
#include "net/http_server.h"
#include "server/choice_writer.h"
#include "server/generation.h"

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
  bool includes_usage = false;
  std::vector<std::string> ignored;   // told in the header x-lockstep-ignored-fields
  std::vector<std::string> warnings;  // told in the header x-lockstep-warnings
};

std::vector<std::pair<std::string, std::string>> ignored_fields_header(
    const std::vector<std::string>& ignored);

// Sentences, at most kWarningsBytesMax of them, in letters that a header may have.
inline constexpr size_t kWarningsBytesMax = 2'000;
std::vector<std::pair<std::string, std::string>> warnings_header(
    const std::vector<std::string>& warnings);

std::unique_ptr<GenerationSink> make_openai_answer(const OpenAiFormat& format, OpenAiAnswer answer,
                                                   HttpReply reply);

}  // namespace lockstep
