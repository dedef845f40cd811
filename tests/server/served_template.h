// A server whose model has a chat template, for tests of the chat APIs.
#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <vector>

#include "server/served.h"

namespace lockstep {

inline std::string template_file(const std::string& name) {
  std::ifstream file(std::filesystem::path(LOCKSTEP_SOURCE_DIR) / "tests/data/templates" / name);
  REQUIRE(file);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// The messages as the model reads them.
inline constexpr const char* kPlainTemplate = "{{ messages | tojson }}";

// Ids that are made at random, by their kind alone.
inline std::string without_ids(const std::string& text) {
  static const std::regex kId("(msg_|call_|req_|rs_|fc_|resp_)[A-Za-z0-9]{24}");
  return std::regex_replace(text, kId, "$1ID");
}

class ServedTemplate {
 public:
  explicit ServedTemplate(const std::string& text,
                          std::chrono::milliseconds silence_max = std::chrono::milliseconds(60'000))
      : server(silence_max) {
    auto format = ChatFormat::parse({text, "", {}});
    REQUIRE(format.ok());
    server.model->folder().chat_format = format.value();
  }

  static std::string body(const std::string& fields, const std::string& messages = "") {
    return R"({"messages":[{"role":"user","content":"Rain?"})" + messages + "]" + fields + "}";
  }
  // The only choice of a non-streamed chat completion.
  Json choice(const std::string& says, const std::string& fields, const std::string& more = "") {
    server.model->says(says);
    const Answer answer = server.post("/v1/chat/completions", body(fields, more));
    REQUIRE_MESSAGE(answer.status == 200, answer.body);
    return at(answer.json(), "choices", 0);
  }
  // The choices of all chunks of a stream except the last, which is usage or DONE.
  std::vector<Json> chunks(const std::string& says, const std::string& fields) {
    server.model->says(says);
    return chunks_of(server.post("/v1/chat/completions", body(fields + R"(,"stream":true)")).body);
  }
  static std::vector<Json> chunks_of(const std::string& body) {
    std::vector<Json> choices;
    for (const std::string& event : stream_events(body)) {
      if (event == "[DONE]") break;
      choices.push_back(at(parse_json(event).value(), "choices", 0));
    }
    return choices;
  }
  // The model's last prompt; its tokens are bytes.
  std::string last_prompt() {
    const auto ids = server.model->request(server.model->request_count() - 1).request.prompt;
    return ByteTokenizer().decode(ids).value();
  }

  Served server;
};

}  // namespace lockstep
