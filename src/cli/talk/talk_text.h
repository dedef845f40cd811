// The short lines of a chat in the terminal: its prompt, the figures of an answer, what an answer
// waits for. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cli/talk/answerer.h"
#include "json/json.h"

namespace lockstep {

std::string token_count_text(int64_t tokens);  // "812", "1.2k", "131k"
std::string grouped_text(int64_t number);      // "12,345"

// "qwen3-0.6b 1.2k/8k > ": the tokens of the conversation and how many there may be.
std::string talk_prompt(std::string_view model, int64_t used, int64_t context);

// "142 tokens, 23.1 tok/s, first 0.31 s, 812 reused + 34 new"; what is not known is left out.
std::string figures_line(const TalkFigures& figures);

// Says what the caller's newest request of this model waits for, from GET /cluster/requests and the
// status. Harmless, one line.
std::string waiting_text(const Json& requests, const Json& status, std::string_view model,
                         double waited_s);

// "thinking, 213 tokens", "thought for 12 s, 213 tokens".
std::string thinking_text(int64_t tokens, double seconds, bool is_over);

}  // namespace lockstep
