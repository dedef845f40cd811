// Renders small templates in tests.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "chat/chat_template.h"
#include "json/json.h"

namespace lockstep {

inline Json json_of(std::string_view text) {
  auto value = parse_json(text);
  REQUIRE_MESSAGE(value.ok(), text);
  return value.value();
}

// Without messages; the members of `variables` are set as a request would set them.
inline Result<std::vector<PromptPiece>> render_pieces(std::string_view source,
                                                      std::string_view variables = "{}") {
  const Json messages = JsonArray();
  const Json given = json_of(variables);
  ChatTemplateInput input;
  input.messages = &messages;
  input.request_variables = &given.as_object();
  if (const Json* own = find(given, "messages")) input.messages = own;
  input.now = parse_time("2025-09-07T08:05:03").value();
  return TRY(ChatTemplate::parse(source)).render(input);
}

inline std::string rendered(std::string_view source, std::string_view variables = "{}") {
  const auto pieces = render_pieces(source, variables);
  REQUIRE_MESSAGE(pieces.ok(), source, ": ", pieces.error().message);
  return prompt_text(pieces.value());
}

inline Error refused(std::string_view source, std::string_view variables = "{}") {
  const auto pieces = render_pieces(source, variables);
  REQUIRE_MESSAGE(!pieces.ok(), source);
  return pieces.error();
}

// The pieces in one line, input in brackets: "<|user|>[hello]".
inline std::string marked(std::string_view source, std::string_view variables = "{}") {
  const auto pieces = render_pieces(source, variables);
  REQUIRE_MESSAGE(pieces.ok(), source, ": ", pieces.error().message);
  std::string text;
  for (const PromptPiece& piece : pieces.value()) {
    text += piece.is_from_input ? "[" + piece.text + "]" : piece.text;
  }
  return text;
}

}  // namespace lockstep
