// Published vocabularies with texts and their ids, made by Hugging Face's tokenizers and by
// independent encoders. Those that may be shipped are in tests/data/tokenizer, the others in a
// folder outside the project that may be missing (LOCKSTEP_SHARED_DIR, by default "../shared").
#include <cstdlib>
#include <filesystem>
#include <string>

#include "support/qwen_tokenizer.h"
#include "tokenizer/test_tokenizers.h"

using namespace lockstep;

namespace {

namespace fs = std::filesystem;

struct Folder {
  const char* name;
  const char* file;
  size_t cases;
};

constexpr Folder kFolders[] = {
    {"qwen2", "vocabulary.txt", 63},
    {"mistral-v3", "tokenizer.model", 16},
    {"gpt-2", "ggml-vocab-gpt-2.gguf", 63},
    {"phi-3", "ggml-vocab-phi-3.gguf", 47},
    {"falcon", "ggml-vocab-falcon.gguf", 63},
    {"llama-bpe", "tokenizer.model", 63},
    {"llama-spm", "ggml-vocab-llama-spm.gguf", 63},
    {"starcoder", "ggml-vocab-starcoder.gguf", 63},
    {"deepseek-llm", "ggml-vocab-deepseek-llm.gguf", 63},
    {"deepseek-coder", "ggml-vocab-deepseek-coder.gguf", 63},
};

fs::path shared_folder() {
  const char* shared = std::getenv("LOCKSTEP_SHARED_DIR");
  return shared != nullptr ? fs::path(shared) : fs::path(LOCKSTEP_SOURCE_DIR) / ".." / "shared";
}

// Empty if the vocabulary is missing.
fs::path folder_of(const Folder& folder) {
  for (const fs::path& root : {fs::path(LOCKSTEP_SOURCE_DIR) / "tests/data/tokenizer",
                               shared_folder() / "data/tokenizer"}) {
    if (fs::exists(root / folder.name / folder.file)) return root / folder.name;
  }
  return {};
}

void check_case(const Tokenizer& tokenizer, const Json& value) {
  const std::string text(value.at("text").get_string());
  CAPTURE(text);
  const Ids expected = ids_of(value.at("ids"));
  const Ids ids = tokenizer.encode(text, {});
  CHECK(ids == expected);
  // Pieces cut anywhere give the same ids as the whole text.
  for (size_t cut = 1; cut < text.size(); cut += 1 + text.size() / 5) {
    if ((text[cut] & 0xC0) == 0x80) continue;
    const PromptText pieces[] = {{std::string_view(text).substr(0, cut), true},
                                 {std::string_view(text).substr(cut), false}};
    CHECK(tokenizer.encode_pieces(pieces, false) == expected);
  }
}

}  // namespace

TEST_CASE("published vocabularies give the published ids") {
  for (const Folder& folder : kFolders) {
    const fs::path path = folder_of(folder);
    if (path.empty()) {
      MESSAGE("skipped " << folder.name << ": set LOCKSTEP_SHARED_DIR to a folder that has it");
      continue;
    }
    CAPTURE(folder.name);
    const bool is_compact = fs::path(folder.file) == "vocabulary.txt";
    const auto tokenizer = is_compact ? Tokenizer::parse(qwen_tokenizer_json(path).value())
                                      : Tokenizer::load(path / folder.file);
    if (!tokenizer.ok()) FAIL(tokenizer.error().message);
    const Json cases = read_json((path / "cases.json").string());
    CHECK(cases.get_array().size() == folder.cases);
    for (const Json& value : cases.get_array()) check_case(*tokenizer.value(), value);
  }
}
