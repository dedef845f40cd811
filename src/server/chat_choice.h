// One choice of a chat completion: what the model writes goes through the parser of its family, so
// that reasoning, content and tool calls come apart.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "chat/output_parser.h"
#include "chat/sampled_calls.h"
#include "server/choice_writer.h"
#include "tokenizer/tokenizer.h"

namespace lockstep {

// The answer's calls are remembered in `sampled`.
std::unique_ptr<ChoiceWriter> make_chat_choice(size_t index, OutputParser::Options options,
                                               std::shared_ptr<SampledCalls> sampled);

// The special tokens of a model that are markers of the format, with their texts: all others are no
// part of what is generated.
std::map<int32_t, std::string> marker_tokens(const ToolFormat& format, const Tokenizer& tokenizer);

}  // namespace lockstep
