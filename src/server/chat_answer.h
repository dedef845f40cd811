// The answer of a chat API that has one choice: what the model writes goes through the parser of
// its family, and what that understands to the API's ChatWriter.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "chat/output_parser.h"
#include "chat/sampled_calls.h"
#include "net/http_server.h"
#include "server/chat_writer.h"
#include "server/generation.h"

namespace lockstep {

struct ChatAnswer {
  std::unique_ptr<ChatWriter> writer;
  OutputParser::Options parser;
  std::shared_ptr<SampledCalls> sampled;  // remembers the answer's calls
  bool is_streamed = false;
  std::string stream_type;                      // content type of a stream
  std::string whole_type = "application/json";  // and of one object
  std::vector<std::pair<std::string, std::string>> headers;
};

std::unique_ptr<GenerationSink> make_chat_answer(ChatAnswer answer, HttpReply reply);

}  // namespace lockstep
