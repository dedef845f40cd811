// Fill-in-the-middle, and converting text to tokens and back.
#include <algorithm>

#include "server/generation/fim_prompt.h"
#include "server/served.h"

namespace lockstep {
namespace {

// Like ByteTokenizer, with these texts as special tokens from 258 on.
class SpecialTokenizer : public ByteTokenizer {
 public:
  explicit SpecialTokenizer(std::vector<std::string> names) : names_(std::move(names)) {}

  int vocab_size() const override { return 258 + static_cast<int>(names_.size()); }
  std::vector<int32_t> encode(std::string_view text, EncodeOptions options) const override {
    const auto name = std::find(names_.begin(), names_.end(), text);
    if (!options.parse_special || name == names_.end()) return ByteTokenizer::encode(text, options);
    return {258 + static_cast<int32_t>(name - names_.begin())};
  }

 private:
  const std::vector<std::string> names_;
};

}  // namespace

TEST_CASE("each family's prompt for the middle has its own order") {
  struct Case {
    std::vector<std::string> names;
    Ids ids;  // of the text between a and b
  };
  const Case cases[] = {
      {{"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"}, {256, 258, 'a', 259, 'b', 260}},
      {{"<fim_prefix>", "<fim_suffix>", "<fim_middle>"}, {256, 258, 'a', 259, 'b', 260}},
      {{"<\uff5cfim\u2581begin\uff5c>", "<\uff5cfim\u2581hole\uff5c>",
        "<\uff5cfim\u2581end\uff5c>"},
       {256, 258, 'a', 259, 'b', 260}},
      {{"\u2581<PRE>", "\u2581<SUF>", "\u2581<MID>"}, {256, 258, ' ', 'a', 259, 'b', 260}},
      {{"[PREFIX]", "[SUFFIX]"}, {256, 259, 'b', 258, 'a'}}};
  for (const Case& one : cases) {
    CAPTURE(one.names.front());
    const SpecialTokenizer tokenizer(one.names);
    CHECK(has_fim(tokenizer));
    CHECK(fim_prompt(tokenizer, "a", "b").value().ids == one.ids);
  }
  const SpecialTokenizer half({"<|fim_prefix|>", "<|fim_suffix|>"});
  CHECK(!has_fim(half));
  CHECK(fim_prompt(half, "a", "b").error().param == "suffix");
}

TEST_CASE("tokens that begin another file end the middle") {
  const SpecialTokenizer tokenizer(
      {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|file_sep|>", "<|endoftext|>"});
  CHECK(fim_prompt(tokenizer, "a", "b").value().stop_ids == Ids{261, 262});
}

TEST_CASE("a completion with a suffix asks for the middle; without tokens for it, it is refused") {
  Served server;
  server.model->says("m");
  const char* const body = R"({"prompt":"a","suffix":"b","max_tokens":4})";
  const Answer refused = server.post("/v1/completions", body);
  CHECK(refused.status == 400);
  CHECK(at(refused.json(), "error", "param") == "suffix");
  CHECK(server.model->request_count() == 0);
  server.model->folder().tokenizer = std::make_shared<SpecialTokenizer>(std::vector<std::string>{
      "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|file_sep|>"});
  const Answer answer = server.post("/v1/completions", body);
  CHECK(at(answer.json(), "choices", 0, "text") == "m");
  const GenerateRequest request = server.model->request(0).request;
  CHECK(request.prompt == Ids{256, 258, 'a', 259, 'b', 260});
  CHECK(request.stop_ids == Ids{257, 261});
  CHECK(server.post("/v1/completions", R"({"prompt":"a","suffix":""})").status == 200);
  CHECK(server.model->request(1).request.prompt == Ids{256, 'a'});
  CHECK(server.post("/v1/completions", R"({"prompt":[1,2],"suffix":"b"})").status == 400);
  CHECK(server.post("/v1/completions", R"({"prompt":"a","suffix":"b","echo":true})").status == 400);
  const Answer ollama = server.post(
      "/api/generate", R"({"model":"tiny-model","prompt":"a","suffix":"b","stream":false})");
  CHECK(at(ollama.json(), "response") == "m");
  CHECK(server.model->request(2).request.prompt == Ids{256, 258, 'a', 259, 'b', 260});
}

TEST_CASE("texts become token ids and ids become texts") {
  Served server;
  CHECK(server.post("/tokenize", R"({"content":"ab"})").body == R"({"tokens":[97,98]})");
  CHECK(server.post("/tokenize", R"({"content":"a","add_special":true})").body ==
        R"({"tokens":[256,97]})");
  CHECK(server.post("/tokenize", R"({"content":"aé","with_pieces":true})").body ==
        R"({"tokens":[{"id":97,"piece":"a"},{"id":195,"piece":[195]},{"id":169,"piece":[169]}]})");
  CHECK(server.post("/detokenize", R"({"tokens":[97,98]})").body == R"({"content":"ab"})");
  CHECK(server.post("/detokenize", R"({"tokens":[]})").body == R"({"content":""})");
  CHECK(server.post("/tokenize", "{}").status == 400);
  for (const char* tokens : {"5", "[300]", "[-1]", R"(["a"])", "[[1]]"}) {
    CAPTURE(tokens);
    CHECK(server.post("/detokenize", R"({"tokens":)" + std::string(tokens) + "}").status == 400);
  }
}

}  // namespace lockstep
