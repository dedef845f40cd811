// One answer of `lockstep run` without a chat: printed as text, as one JSON value, or only its
// code.
#pragma once

#include <string>

#include "cli/repl/answer_view.h"
#include "cli/talk/answerer.h"

namespace lockstep {

struct OneAnswerOptions {
  TalkSettings settings;
  AnswerViewOptions view;
  bool is_json = false;
  bool is_code = false;  // the first block of code alone
  std::string node;      // where it was answered, for the JSON; empty: by own workers
};

// Answers the conversation's last message, adds the answer to it and prints it.
Status answer_once(Answerer& answerer, Dialogue& conversation, const OneAnswerOptions& options);

}  // namespace lockstep
