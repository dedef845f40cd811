#include "cli/text/model_text.h"

#include <fmt/core.h>

#include <filesystem>

#include "base/files/mapped_file.h"
#include "chat/template_file.h"
#include "gguf/gguf_model.h"
#include "json/json.h"
#include "tokenizer/tokenizer.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

// A string of a GGUF file's metadata; empty if there is none.
std::string gguf_text(const fs::path& path, std::string_view key) {
  const auto file = MappedFile::open(gguf_first_part(path));
  if (!file.ok()) return "";
  const auto parsed = GgufFile::parse(file.value().bytes());
  if (!parsed.ok()) return "";
  const auto text = parsed.value().string(key);
  return text.ok() ? std::string(text.value().value_or("")) : "";
}

// "BPE", "Unigram"...
std::string json_model_type(const fs::path& path) {
  const auto file = MappedFile::open(path);
  if (!file.ok()) return "unreadable";
  const auto bytes = file.value().bytes();
  const auto json = parse_large_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  const Json* model = json.ok() ? find(json.value(), "model") : nullptr;
  if (!model) return "unreadable";
  const auto type = get_string(*model, "type");
  return type.ok() ? type.value().value_or("of an unnamed type") : "of an unnamed type";
}

// In the order in which Tokenizer::load() tries them.
std::string path_kind(const fs::path& path) {
  if (is_gguf_path(path)) {
    const std::string model = gguf_text(path, "tokenizer.ggml.model");
    const std::string pre = gguf_text(path, "tokenizer.ggml.pre");
    return model.empty() ? "" : fmt::format("{}{}{}, GGUF", model, pre.empty() ? "" : ", ", pre);
  }
  std::error_code ignored;
  if (fs::exists(path / "tokenizer.json", ignored)) {
    return json_model_type(path / "tokenizer.json") + ", tokenizer.json";
  }
  if (fs::exists(path / "tekken.json", ignored)) return "Tekken BPE, tekken.json";
  if (fs::exists(path / "tokenizer.model", ignored)) return "SentencePiece, tokenizer.model";
  if (fs::exists(path / "tiktoken.model", ignored)) return "tiktoken BPE, tiktoken.model";
  return "";
}

}  // namespace

TokenizerFacts tokenizer_facts(const std::string& model) {
  TokenizerFacts facts;
  facts.kind = path_kind(model);
  if (facts.kind.empty()) return facts;
  const auto tokenizer = Tokenizer::load(model);
  if (tokenizer.ok()) {
    facts.tokens = tokenizer.value()->vocab_size();
  } else {
    facts.problem = tokenizer.error().message;
  }
  return facts;
}

std::optional<TemplateFacts> chat_template_facts(const std::string& model) {
  const auto source = read_template_source(model);
  if (!source.ok() || source.value().text.empty()) return std::nullopt;
  return template_facts(source.value().text);
}

}  // namespace lockstep
