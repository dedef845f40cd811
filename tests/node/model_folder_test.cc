#include "node/models/model_folder.h"

#include <doctest/doctest.h>

#include <fstream>
#include <string>

#include "node/group_fixture.h"
#include "support/gguf_writer.h"
#include "support/qwen_tokenizer.h"

using namespace lockstep;

namespace {

void write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path) << text;
}

}  // namespace

TEST_CASE("a folder's name and stop ids are read") {
  const TemporaryModel model("tiny");
  CHECK(read_model_folder(model.path() / "").value().name == "tiny");
  CHECK(read_model_folder(model.path()).value().stop_ids == std::vector<int32_t>{2});
  write(model.path() / "generation_config.json", R"({"eos_token_id": [7, 8]})");
  CHECK(read_model_folder(model.path()).value().stop_ids == std::vector<int32_t>{7, 8, 2});
  write(model.path() / "config.json", R"({"eos_token_id": 8, "text_config": {"eos_token_id": 9}})");
  CHECK(read_model_folder(model.path()).value().stop_ids == std::vector<int32_t>{7, 8, 9});
  write(model.path() / "config.json", R"({"eos_token_id": 2})");
  write(model.path() / "generation_config.json", R"({"temperature": 1})");
  CHECK(read_model_folder(model.path()).value().stop_ids == std::vector<int32_t>{2});
  write(model.path() / "config.json", R"({"text_config": {"eos_token_id": 9}})");
  CHECK(read_model_folder(model.path()).value().stop_ids == std::vector<int32_t>{9});
  write(model.path() / "config.json", "{}");
  CHECK(read_model_folder(model.path()).value().stop_ids.empty());
}

TEST_CASE("a folder that is not a model is an error that says why") {
  CHECK(read_model_folder("/nowhere").error().message ==
        "there is no model folder or .gguf file /nowhere");
  CHECK(read_model_folder("nowhere").error().message ==
        "there is no model folder or .gguf file nowhere; write a model of the hub with its owner, "
        "as Qwen/Qwen3-8B");
  const TemporaryModel model("tiny");
  const auto error_of = [](const std::filesystem::path& path) {
    return read_model_folder(path).error().message;
  };
  std::filesystem::remove(model.path() / "config.json");
  CHECK(error_of(model.path()) ==
        model.path().string() + " is not a model folder: config.json is missing");
  write(model.path() / "tiny-q8_0.gguf", "");
  CHECK(error_of(model.path()).find("name the GGUF file in it, ") != std::string::npos);
  write(model.path() / "notes.txt", "text");
  CHECK(error_of(model.path() / "notes.txt") ==
        (model.path() / "notes.txt").string() + " is neither a model folder nor a GGUF file");
  write(model.path() / "config.json", "{\"eos_token_id\": \"two\"}");
  CHECK(read_model_folder(model.path()).error().code == ErrorCode::kCorrupt);
  write(model.path() / "config.json", "{\"eos_token_id\": [1, 1.5]}");
  CHECK_FALSE(read_model_folder(model.path()).ok());
  write(model.path() / "config.json", "{");
  CHECK(read_model_folder(model.path()).error().message.find("config.json") != std::string::npos);
  std::filesystem::remove(model.path() / "config.json");
  CHECK(read_model_folder(model.path()).error().code == ErrorCode::kNotFound);
}

TEST_CASE("a .gguf file is a model with its name, stop ids and tokenizer") {
  const TemporaryModel model("tiny");
  GgufWriter writer;
  writer.string("general.architecture", "qwen3").integer("qwen3.block_count", 1);
  writer.integer("qwen3.context_length", 64).integer("qwen3.embedding_length", 2);
  writer.integer("qwen3.feed_forward_length", 2).integer("qwen3.attention.head_count", 1);
  writer.number("qwen3.attention.layer_norm_rms_epsilon", 1e-6f);
  writer.integer("tokenizer.ggml.eos_token_id", 2).integer("tokenizer.ggml.eot_token_id", 1);
  writer.floats("token_embd.weight", {2, 3}, {1, 2, 3, 4, 5, 6});
  const auto path = model.path() / "Some-Model-Q8_0.gguf";
  write(path, writer.file());
  const auto read = read_model_folder(path);
  REQUIRE_MESSAGE(read.ok(), (read.ok() ? "" : read.error().message));
  CHECK(read.value().name == "Some-Model-Q8_0");
  CHECK(read.value().stop_ids == std::vector<int32_t>{1, 2});
  CHECK_FALSE(read.value().tokenizer);

  std::string scores, types;
  for (const int32_t type : {2, 3, 3, 1}) types += GgufWriter::raw(type);
  for (int i = 0; i < 4; ++i) scores += GgufWriter::raw(0.0f);
  writer.string("tokenizer.ggml.model", "llama");
  writer.strings("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>", "a"});
  writer.array("tokenizer.ggml.token_type", GgufWriter::kInt32, 4, types);
  writer.array("tokenizer.ggml.scores", GgufWriter::kFloat32, 4, scores);
  write(path, writer.file());
  const auto with_tokenizer = read_model_folder(path);
  REQUIRE_MESSAGE(with_tokenizer.ok(), (with_tokenizer.ok() ? "" : with_tokenizer.error().message));
  REQUIRE(with_tokenizer.value().tokenizer);
  CHECK(with_tokenizer.value().tokenizer->vocab_size() == 4);

  write(path, "GGUF and then nothing");
  CHECK(read_model_folder(path).error().message.find(path.string()) == 0);
  CHECK(read_model_folder(model.path() / "none.gguf").error().code == ErrorCode::kNotFound);
}

TEST_CASE("how embeddings are pooled is read, by the last token if nothing is said") {
  const TemporaryModel model("tiny");
  CHECK(read_model_folder(model.path()).value().pooling == Pooling::kLast);
  const auto folder = model.path() / "1_Pooling";
  std::filesystem::create_directory(folder);
  write(folder / "config.json",
        R"({"pooling_mode_cls_token": false, "pooling_mode_mean_tokens": true})");
  CHECK(read_model_folder(model.path()).value().pooling == Pooling::kMean);
  write(folder / "config.json",
        R"({"pooling_mode_mean_tokens": false, "pooling_mode_lasttoken": true})");
  CHECK(read_model_folder(model.path()).value().pooling == Pooling::kLast);
  write(folder / "config.json", R"({"pooling_mode_cls_token": true})");
  const auto refused = read_model_folder(model.path());
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == ErrorCode::kUnsupported);
  CHECK(refused.error().message.find("1_Pooling/config.json: only the pooling modes") !=
        std::string::npos);
}

TEST_CASE("the shipped model is read with its tokenizer") {
  const auto folder =
      read_model_folder(std::filesystem::path(LOCKSTEP_SOURCE_DIR) / "models/stories260K");
  REQUIRE_MESSAGE(folder.ok(), (folder.ok() ? "" : folder.error().message));
  CHECK(folder.value().name == "stories260K");
  CHECK(folder.value().tokenizer);
  CHECK(folder.value().stop_ids == std::vector<int32_t>{2, 1});
  REQUIRE(folder.value().chat_format.ok());
  CHECK(folder.value().chat_format.value() == nullptr);
  CHECK_FALSE(folder.value().sampling.temperature);
}

TEST_CASE("the makers' sampling is the default, and an invalid value is ignored") {
  const TemporaryModel model("tiny");
  const auto sampling_with = [&](const std::string& text) {
    write(model.path() / "generation_config.json", text);
    return read_model_folder(model.path()).value().sampling;
  };
  const SamplingDefaults all =
      sampling_with(R"({"temperature": 0.6, "top_p": 0.95, "top_k": 20, "do_sample": true})");
  CHECK(all.temperature == 0.6f);
  CHECK(all.top_p == 0.95f);
  CHECK(all.top_k == 20);
  CHECK(sampling_with(R"({"top_k": -1})").top_k == 0);
  for (const char* bad : {R"({"temperature": -1, "top_p": 7, "top_k": -2})",
                          R"({"temperature": "hot", "top_p": null, "top_k": 0.5})", "{}"}) {
    CAPTURE(bad);
    const SamplingDefaults none = sampling_with(bad);
    CHECK_FALSE(none.temperature);
    CHECK_FALSE(none.top_p);
    CHECK_FALSE(none.top_k);
  }
}

TEST_CASE("the end token that the tokenizer's config names ends a text too") {
  const TemporaryModel model("tiny");
  write(model.path() / "tokenizer.json",
        qwen_tokenizer_json(LOCKSTEP_SOURCE_DIR "/tests/data/tokenizer/qwen2").value());
  write(model.path() / "tokenizer_config.json", R"({"eos_token": {"content": "<|im_end|>"}})");
  CHECK(read_model_folder(model.path()).value().stop_ids == std::vector<int32_t>{2, 151645});
  write(model.path() / "tokenizer_config.json", R"({"eos_token": "two words"})");
  CHECK(read_model_folder(model.path()).value().stop_ids == std::vector<int32_t>{2});
  write(model.path() / "tokenizer_config.json", R"({"eos_token": null})");
  write(model.path() / "special_tokens_map.json", R"({"eos_token": "<|endoftext|>"})");
  CHECK(read_model_folder(model.path()).value().stop_ids == std::vector<int32_t>{2, 151643});
}

TEST_CASE("a model with an unusable chat template can still be read") {
  const TemporaryModel model("tiny");
  write(model.path() / "chat_template.jinja", "{% for m in messages %}{{ m.content }}{% endfor %}");
  const auto good = read_model_folder(model.path());
  REQUIRE(good.value().chat_format.ok());
  CHECK(good.value().chat_format.value() != nullptr);
  write(model.path() / "chat_template.jinja", "{% for %}");
  const auto bad = read_model_folder(model.path());
  REQUIRE(bad.ok());
  CHECK(bad.value().chat_format.error().code == ErrorCode::kCorrupt);
  std::filesystem::remove(model.path() / "chat_template.jinja");
  write(model.path() / "tokenizer_config.json", "{");
  const auto unreadable = read_model_folder(model.path());
  REQUIRE(unreadable.ok());
  CHECK(unreadable.value().chat_format.error().message.find("tokenizer_config.json") !=
        std::string::npos);
}
