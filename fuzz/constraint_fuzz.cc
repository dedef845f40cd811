// links: grammar
// Any text as a constraint: it compiles or is refused, and a compiled one has no dead ends.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "grammar/automaton/matcher.h"
#include "grammar/constraint.h"

using namespace lockstep;

namespace {

// Bytes, and one special token.
class Bytes final : public Tokenizer {
 public:
  int vocab_size() const override { return 257; }
  std::optional<int32_t> bos_id() const override { return std::nullopt; }
  std::vector<int32_t> encode(std::string_view text, EncodeOptions options) const override {
    if (options.parse_special && text == "<call>") return {256};
    std::vector<int32_t> ids;
    for (const char byte : text) ids.push_back(static_cast<uint8_t>(byte));
    return ids;
  }
  Result<std::string> decode(std::span<const int32_t> ids) const override {
    return ids.size() == 1 && ids[0] == 256 ? std::string("<call>") : std::string("?");
  }
  std::string token_bytes(int32_t id) const override {
    return id < 256 ? std::string(1, static_cast<char>(id)) : std::string();
  }
  bool is_special(int32_t id) const override { return id == 256; }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view spec(reinterpret_cast<const char*>(data), size);
  const auto grammar = compile_constraint(spec, Bytes());
  if (!grammar.ok()) {
    LOCKSTEP_CHECK(!grammar.error().message.empty());
    return 0;
  }
  constexpr int kStepsMax = 40;
  static const auto trie = [] {
    std::vector<std::string> tokens;
    for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
    tokens.insert(tokens.end(), 2, "");
    const int32_t end = 257;
    return VocabularyTrie::build(tokens, std::span(&end, 1)).value();
  }();
  Matcher matcher(grammar.value(), trie);
  std::vector<uint64_t> words(trie->mask_words());
  for (int step = 0; step < kStepsMax && !matcher.has_ended(); ++step) {
    if (!matcher.mask(words).ok()) return 0;
    // The allowed token that this input selects.
    int32_t token = -1;
    for (int32_t i = 0; i < 258 && token < 0; ++i) {
      const int32_t one = (i + static_cast<int32_t>(data[step % size]) * 7) % 258;
      if ((words[static_cast<size_t>(one) / 64] >> (one % 64) & 1) != 0) token = one;
    }
    LOCKSTEP_CHECK(token >= 0 && matcher.accept_token(token));
  }
  return 0;
}
