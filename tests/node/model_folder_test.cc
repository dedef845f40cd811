#include "node/model_folder.h"

#include <doctest/doctest.h>

#include <fstream>
#include <string>

#include "node/group_fixture.h"

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
  CHECK(read_model_folder(model.path()).value().stop_ids == std::vector<int32_t>{7, 8});
  write(model.path() / "generation_config.json", R"({"temperature": 1})");
  CHECK(read_model_folder(model.path()).value().stop_ids == std::vector<int32_t>{2});
  write(model.path() / "config.json", R"({"text_config": {"eos_token_id": 9}})");
  CHECK(read_model_folder(model.path()).value().stop_ids == std::vector<int32_t>{9});
  write(model.path() / "config.json", "{}");
  CHECK(read_model_folder(model.path()).value().stop_ids.empty());
}

TEST_CASE("a folder that is no model is an error that says why") {
  CHECK(read_model_folder("/nowhere").error().message == "there is no model folder /nowhere");
  const TemporaryModel model("tiny");
  write(model.path() / "config.json", "{\"eos_token_id\": \"two\"}");
  CHECK(read_model_folder(model.path()).error().code == ErrorCode::kCorrupt);
  write(model.path() / "config.json", "{\"eos_token_id\": [1, 1.5]}");
  CHECK_FALSE(read_model_folder(model.path()).ok());
  write(model.path() / "config.json", "{");
  CHECK(read_model_folder(model.path()).error().message.find("config.json") != std::string::npos);
  std::filesystem::remove(model.path() / "config.json");
  CHECK(read_model_folder(model.path()).error().code == ErrorCode::kNotFound);
}

TEST_CASE("the shipped model is read with its tokenizer") {
  const auto folder =
      read_model_folder(std::filesystem::path(LOCKSTEP_SOURCE_DIR) / "models/stories260K");
  REQUIRE_MESSAGE(folder.ok(), (folder.ok() ? "" : folder.error().message));
  CHECK(folder.value().name == "stories260K");
  CHECK(folder.value().tokenizer);
  CHECK_FALSE(folder.value().stop_ids.empty());
}
