// Model data that Ollama's clients read: Zed, Copilot and Open WebUI need each of these fields.

#include "server/served_template.h"

namespace lockstep {
namespace {

void give_facts(ModelFolder& folder) {
  folder.card = {.architecture = "Qwen3ForCausalLM",
                 .format = "safetensors",
                 .stored_format = "BF16",
                 .parameters = 596'049'920,
                 .file_bytes = 1'192'135'096,
                 .layers = 28,
                 .hidden = 1024,
                 .ffn = 3072,
                 .heads = 16,
                 .kv_heads = 8,
                 .head_dim = 128,
                 .vocab_size = 151'936,
                 .positions_max = 40'960,
                 .digest = std::string(64, 'a'),
                 .modified_us = 1'700'000'000'000'000};
}

void check_details(const Json& details) {
  CHECK(dump_json(details) ==
        R"({"parent_model":"","format":"safetensors","family":"qwen3","families":["qwen3"],)"
        R"("parameter_size":"596.0M","quantization_level":"BF16"})");
}

}  // namespace

TEST_CASE("ollama: tags and ps list the models with all that clients read") {
  Served server;
  give_facts(server.model->folder());
  const Json tags = server.get("/api/tags").json();
  const Json& listed = at(tags, "models", 0);
  CHECK(at(listed, "name") == "org/Tiny-Model");
  CHECK(at(listed, "model") == "org/Tiny-Model");
  CHECK(at(listed, "modified_at") == "2023-11-14T22:13:20.000000Z");
  CHECK(at(listed, "size") == 1'192'135'096);
  CHECK(text_at(at(listed, "digest")) == std::string(64, 'a'));
  check_details(at(listed, "details"));
  const Json ps = server.get("/api/ps").json();
  const Json& running = at(ps, "models", 0);
  CHECK(at(running, "name") == "org/Tiny-Model");
  CHECK(at(running, "size_vram") == 0);
  CHECK(at(running, "context_length") == 1000);
  CHECK(at(running, "expires_at").is_string());
  check_details(at(running, "details"));
  server.model->set_state(ModelStatus::State::kLoading, "");
  CHECK(at(server.get("/api/ps").json(), "models").get_array().empty());
  CHECK(at(server.get("/api/tags").json(), "models").get_array().size() == 1);
}

TEST_CASE("ollama: show reports what a model is and can do") {
  Served server;
  give_facts(server.model->folder());
  server.model->folder().chat_format =
      ChatFormat::parse({template_file("Qwen-Qwen3-0.6B.jinja"), "", {}}).value();
  const Answer answer = server.post("/api/show", R"({"model":"Tiny-Model:latest"})");
  REQUIRE(answer.status == 200);
  const Json shown = answer.json();
  check_details(at(shown, "details"));
  CHECK(dump_json(at(shown, "capabilities")) == R"(["completion","tools","thinking"])");
  const Json& info = at(shown, "model_info");
  CHECK(at(info, "general.architecture") == "qwen3");
  CHECK(at(info, "general.basename") == "org/Tiny-Model");
  CHECK(at(info, "general.parameter_count") == 596'049'920);
  CHECK(at(info, "qwen3.context_length") == 1000);  // as much as fits here
  CHECK(at(info, "qwen3.block_count") == 28);
  CHECK(at(info, "qwen3.embedding_length") == 1024);
  CHECK(at(info, "qwen3.attention.head_count_kv") == 8);
  CHECK(text_at(at(shown, "template")).find("enable_thinking") != std::string::npos);
  CHECK(at(shown, "parameters") == "temperature 0.8\ntop_k 40\ntop_p 0.9");
  for (const char* name : {"license", "modelfile", "modified_at"}) {
    CHECK(at(shown, name).is_string());
  }
  CHECK(server.post("/api/show", R"({"name":"tiny-model"})").status == 200);
  CHECK(server.post("/api/show", "{}").status == 400);
  const Answer unknown = server.post("/api/show", R"({"model":"other"})");
  CHECK(unknown.status == 404);
  CHECK(at(unknown.json(), "error").is_string());
}

TEST_CASE("ollama: a model without a template completes, one for embeddings embeds") {
  Served server;
  const auto capabilities = [&] {
    return dump_json(
        at(server.post("/api/show", R"({"model":"tiny-model"})").json(), "capabilities"));
  };
  CHECK(capabilities() == R"(["completion"])");
  // A model about which nothing is known is still shown.
  CHECK(at(server.get("/api/tags").json(), "models", 0, "details", "family") == "unknown");
  server.model->folder().card.is_embedding = true;
  CHECK(capabilities() == R"(["embedding"])");
}

}  // namespace lockstep
