#include "cli/text/model_text.h"

#include <doctest/doctest.h>

#include <string>

#include "support/gguf_writer.h"
#include "support/temporary_folder.h"

using namespace lockstep;

namespace {

GgufWriter writer_with_text() {
  GgufWriter writer;
  writer.string("tokenizer.ggml.model", "llama");
  writer.strings("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>", "a"});
  std::string scores, types;
  for (const int32_t type : {2, 3, 3, 1}) {
    scores += GgufWriter::raw(0.0f);
    types += GgufWriter::raw(type);
  }
  writer.array("tokenizer.ggml.scores", GgufWriter::kFloat32, 4, scores);
  writer.array("tokenizer.ggml.token_type", GgufWriter::kInt32, 4, types);
  writer.string("tokenizer.chat_template", "{{ messages[0]['content'] }}");
  return writer;
}

void check_text(const std::string& model) {
  CAPTURE(model);
  const TokenizerFacts tokenizer = tokenizer_facts(model);
  CHECK(tokenizer.kind == "llama, GGUF");
  CHECK(tokenizer.problem == "");
  CHECK(tokenizer.tokens == 4);
  CHECK(chat_template_facts(model).has_value());
}

}  // namespace

TEST_CASE("a GGUF model's text is found from any part and under any file name") {
  const TemporaryFolder folder;
  const std::string first = writer_with_text().file();
  check_text(folder.write("model-00001-of-00002.gguf", first));
  check_text(folder.write("model-00002-of-00002.gguf", GgufWriter().file()));
  check_text(folder.write("sha256-0123abcd", first));
}

TEST_CASE("a GGUF file without a tokenizer and a template has none") {
  const TemporaryFolder folder;
  const std::string path = folder.write("model.gguf", GgufWriter().file());
  CHECK(tokenizer_facts(path).kind == "");
  CHECK_FALSE(chat_template_facts(path).has_value());
}
