// Dialogue: the messages of a chat in the terminal and how the next one is to be answered.
// Values and pure functions; one thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/json.h"

namespace lockstep {

struct TalkMessage {
  bool is_answer = false;
  std::string content;
  std::string reasoning;  // of an answer
};

// How answers are made.
struct TalkSettings {
  JsonObject options;  // fields of a request: temperature, seed...
  // "on", "off", or an effort ("low", "medium", "high"); empty: the template decides.
  std::string thinking;
  std::optional<Json> schema;  // that the answer must match
  bool is_raw = false;         // the plain text is continued, without a chat template
};

class Dialogue {
 public:
  static constexpr std::string_view kFormat = "lockstep-conversation-1";

  std::string model;
  std::string system;

  const std::vector<TalkMessage>& messages() const { return messages_; }
  bool is_empty() const { return messages_.empty(); }
  void ask(std::string text) { messages_.push_back({false, std::move(text), ""}); }
  void answer(std::string text, std::string reasoning) {
    messages_.push_back({true, std::move(text), std::move(reasoning)});
  }
  void clear() { messages_.clear(); }
  // Removes the last question and what follows it, and returns it; nullopt: there is none.
  std::optional<std::string> take_back();
  const TalkMessage* last_answer() const;  // null: none

  // "messages" of a chat request.
  JsonArray request_messages() const;
  // For a model without a template: all texts, joined with line ends.
  std::string plain_text() const;

  std::string saved() const;  // JSON
  // kCorrupt unless `text` was made by saved().
  static Result<Dialogue> parse(std::string_view text);
  std::string markdown() const;

 private:
  std::vector<TalkMessage> messages_;
};

// The names of the options of /set.
std::vector<std::string_view> talk_option_names();
// The value of such an option, as a request has it. kInvalidArgument with the options that exist
// or what the value must be.
Result<Json> parse_talk_option(std::string_view name, std::string_view value);
// Whether TalkSettings::thinking can be it; "auto" is the empty one.
inline constexpr std::array<std::string_view, 6> kThinkValues = {"on",     "off",  "low",
                                                                 "medium", "high", "auto"};
bool is_think_value(std::string_view text);
// "temperature 0.5, seed 3"; "" if there is none.
std::string talk_options_text(const JsonObject& options);

// The body of a streamed chat completion or, for models without a template and with `is_raw`, of a
// completion. `context` limits a completion, whose default is 16 tokens.
JsonObject talk_request_body(const Dialogue& conversation, const TalkSettings& settings,
                             bool is_completion, int64_t context);

// The content of the first block of code between fences; nullopt: there is none.
std::optional<std::string> first_code_block(std::string_view markdown);

}  // namespace lockstep
