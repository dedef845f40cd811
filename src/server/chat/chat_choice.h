// One choice of a chat completion: the parser of the model's family splits its output into
// reasoning, content and tool calls.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "chat/calls/output_parser.h"
#include "chat/calls/sampled_calls.h"
#include "server/generation/choice_writer.h"
#include "tokenizer/tokenizer.h"

namespace lockstep {

// Records the answer's calls in `sampled`.
std::unique_ptr<ChoiceWriter> make_chat_choice(size_t index, OutputParser::Options options,
                                               std::shared_ptr<SampledCalls> sampled);

// The special tokens that are markers of the format, with their texts. No other special token
// becomes part of the text.
std::map<int32_t, std::string> marker_tokens(const ToolFormat& format, const Tokenizer& tokenizer);

}  // namespace lockstep
