#include "chat/template_file.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "support/gguf_writer.h"
#include "support/temporary_folder.h"

using namespace lockstep;

TEST_CASE("a .gguf file holds a chat template and the texts of its special tokens") {
  const TemporaryFolder folder;
  GgufWriter writer;
  writer.string("tokenizer.chat_template", "{{ bos_token }}{{ messages[0].content }}");
  writer.strings("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>"});
  writer.integer("tokenizer.ggml.bos_token_id", 1).integer("tokenizer.ggml.eos_token_id", 2);
  writer.integer("tokenizer.ggml.padding_token_id", 3);  // not a token
  const std::string path = folder.write("m-00001-of-00002.gguf", writer.file());
  for (const std::string& part :
       {path, std::filesystem::path(path).replace_filename("m-00002-of-00002.gguf").string()}) {
    const auto loaded = load_model_template(part);
    REQUIRE_MESSAGE(loaded.ok(), (loaded.ok() ? "" : loaded.error().message));
    CHECK(loaded.value().tokens == JsonObject{{"bos_token", "<s>"}, {"eos_token", "</s>"}});
  }
}

TEST_CASE("a .gguf file without a template, or an invalid one, is an error with its path") {
  const TemporaryFolder folder;
  const std::string empty = folder.write("empty.gguf", GgufWriter().file());
  const auto none = load_model_template(empty);
  REQUIRE_FALSE(none.ok());
  CHECK(none.error().code == ErrorCode::kNotFound);
  CHECK(none.error().message == empty + ": it has no tokenizer.chat_template");
  const std::string broken = folder.write("broken.gguf", "GGUF");
  CHECK(load_model_template(broken).error().message.find(broken + ": ") == 0);
  const std::string bad =
      folder.write("bad.gguf", GgufWriter().string("tokenizer.chat_template", "{% if %}").file());
  CHECK_FALSE(load_model_template(bad).ok());
  CHECK(load_model_template("/nowhere/x.gguf").error().code == ErrorCode::kNotFound);
}
