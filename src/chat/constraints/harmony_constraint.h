// The constraint of an answer in harmony, gpt-oss's format; see harmony_reader.cc. Part of
// answer_constraint.h; pure.
#pragma once

#include "chat/constraints/answer_constraint.h"

namespace lockstep {

Json harmony_answer(const AnswerOptions& options, bool has_calls);

}  // namespace lockstep
