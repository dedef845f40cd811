// The answer of a chat API with a single choice: the parser of the model's family reads its output
// and passes deltas to the API's ChatWriter.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "chat/calls/output_parser.h"
#include "chat/calls/sampled_calls.h"
#include "net/http/http_server.h"
#include "server/chat/chat_writer.h"
#include "server/generation/generation.h"

namespace lockstep {

struct ChatAnswer {
  std::unique_ptr<ChatWriter> writer;
  OutputParser::Options parser;
  std::shared_ptr<SampledCalls> sampled;  // remembers the answer's calls
  bool is_streamed = false;
  std::string stream_type;                      // content type of a stream
  std::string whole_type = "application/json";  // and of a single object
  std::vector<std::pair<std::string, std::string>> headers;
};

std::unique_ptr<GenerationSink> make_chat_answer(ChatAnswer answer, HttpReply reply);

}  // namespace lockstep
