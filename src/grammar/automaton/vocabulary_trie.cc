#include "grammar/automaton/vocabulary_trie.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/utf8.h"

namespace lockstep {
namespace {

constexpr size_t kTokenBytesMax = 60'000;   // depths are 16 bits
constexpr uint32_t kPlainMaskLengths = 32;  // 0.5 MiB at 128k tokens

bool is_ascii_word(uint8_t byte) {
  return (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
         (byte >= 'a' && byte <= 'z');
}

// The characters of a token that is whole plain characters of a JSON string; 0 if it is not.
uint32_t plain_characters(std::string_view bytes) {
  uint32_t count = 0;
  while (!bytes.empty()) {
    const Utf8Character character = first_utf8_character(bytes);
    if (character.state != Utf8State::kValid || character.code_point < 0x20 ||
        character.code_point == '"' || character.code_point == '\\') {
      return 0;
    }
    bytes.remove_prefix(character.bytes);
    ++count;
  }
  return count;
}

// The kind of character that a byte begins after `tail` bytes of an incomplete character; nullopt
// if it continues that character. `prefix` ends with the byte.
std::optional<uint8_t> begun_character(std::string_view prefix, size_t tail) {
  const Utf8Character character = first_utf8_character(prefix.substr(prefix.size() - tail - 1));
  if (character.state == Utf8State::kInvalid) return CharacterKinds::kOdd;
  if (tail > 0) return std::nullopt;
  const auto byte = static_cast<uint8_t>(prefix.back());
  if (byte >= 0x80) return CharacterKinds::kBeyondAscii;
  return byte < 2 ? CharacterKinds::kOdd : byte;
}

class TreeBuilder {
 public:
  TreeBuilder(const VocabularyTrie& vocabulary, std::vector<int32_t> tokens)
      : vocabulary_(vocabulary), tokens_(std::move(tokens)) {
    std::sort(tokens_.begin(), tokens_.end(), [this](int32_t a, int32_t b) {
      const auto first = vocabulary_.bytes_of(a);
      const auto second = vocabulary_.bytes_of(b);
      return first != second ? first < second : a < b;
    });
  }

  VocabularyTrie::Tree build() {
    std::string_view before;
    for (uint32_t i = 0; i < tokens_.size(); ++i) {
      const std::string_view bytes = vocabulary_.bytes_of(tokens_[i]);
      const auto difference =
          std::mismatch(before.begin(), before.end(), bytes.begin(), bytes.end());
      close_to(static_cast<size_t>(difference.first - before.begin()));
      while (path_.size() < bytes.size()) open(static_cast<uint8_t>(bytes[path_.size()]), i);
      for (const uint32_t node : path_) {
        auto& longest = tree_.nodes[node].characters_max;
        longest = std::max(longest, tree_.nodes[path_.back()].characters);
      }
      before = bytes;
    }
    close_to(0);
    mark_words();
    collect_characters();
    VocabularyTrie::Node sentinel{};
    sentinel.tokens = static_cast<uint32_t>(tokens_.size());
    tree_.nodes.push_back(sentinel);
    tree_.tokens = std::move(tokens_);
    return std::move(tree_);
  }

 private:
  void mark_words() {
    for (size_t i = tree_.nodes.size(); i-- > 0;) {
      bool is_word = true;
      for (size_t child = i + 1; child < tree_.nodes[i].end; child = tree_.nodes[child].end) {
        const VocabularyTrie::Node& node = tree_.nodes[child];
        is_word &= is_ascii_word(node.byte) && node.is_word_below;
      }
      tree_.nodes[i].is_word_below = is_word;
    }
  }

  void collect_characters() {
    auto& below = tree_.characters_below;
    below.resize(tree_.nodes.size());
    for (size_t i = tree_.nodes.size(); i-- > 0;) {
      for (size_t child = i + 1; child < tree_.nodes[i].end; child = tree_.nodes[child].end) {
        below[i].add(below[child]);
        if (begun_[child]) below[i].add(*begun_[child]);
      }
    }
  }

  void open(uint8_t byte, uint32_t token) {
    VocabularyTrie::Node node{};
    node.tokens = token;
    node.depth = static_cast<uint16_t>(path_.size() + 1);
    node.byte = byte;
    const size_t tail_before = incomplete_utf8_tail(prefix_);
    prefix_.push_back(static_cast<char>(byte));
    begun_.push_back(begun_character(prefix_, tail_before));
    const size_t tail = incomplete_utf8_tail(prefix_);
    node.is_boundary = tail == 0;
    const uint16_t before = path_.empty() ? uint16_t{0} : tree_.nodes[path_.back()].characters;
    node.characters = static_cast<uint16_t>(before + (node.is_boundary ? 1 : 0));
    path_.push_back(static_cast<uint32_t>(tree_.nodes.size()));
    tree_.nodes.push_back(node);
  }

  void close_to(size_t depth) {
    while (path_.size() > depth) {
      tree_.nodes[path_.back()].end = static_cast<uint32_t>(tree_.nodes.size());
      path_.pop_back();
      prefix_.pop_back();
    }
  }

  const VocabularyTrie& vocabulary_;
  std::vector<int32_t> tokens_;
  VocabularyTrie::Tree tree_;
  std::vector<uint32_t> path_;
  std::string prefix_;
  std::vector<std::optional<uint8_t>> begun_;  // by node: the result of begun_character()
};

}  // namespace

Result<std::shared_ptr<const VocabularyTrie>> VocabularyTrie::build(
    const Tokenizer& tokenizer, std::span<const int32_t> end_tokens) {
  std::vector<std::string> tokens;
  tokens.reserve(static_cast<size_t>(tokenizer.vocab_size()));
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    tokens.push_back(tokenizer.is_special(id) ? std::string() : tokenizer.token_bytes(id));
  }
  return build(tokens, end_tokens);
}

Result<std::shared_ptr<const VocabularyTrie>> VocabularyTrie::build(
    const std::vector<std::string>& tokens, std::span<const int32_t> end_tokens) {
  std::shared_ptr<VocabularyTrie> trie(new VocabularyTrie());
  trie->token_count_ = tokens.size();
  trie->byte_starts_.push_back(0);
  for (const int32_t token : end_tokens) {
    if (token < 0 || token >= trie->token_count()) {
      return Error{ErrorCode::kInvalidArgument, "the end token " + std::to_string(token) +
                                                    " is outside of the vocabulary of " +
                                                    std::to_string(tokens.size()) + " tokens"};
    }
    trie->end_tokens_.push_back(token);
  }
  for (const std::string& token : tokens) {
    if (token.size() > kTokenBytesMax) {
      return Error{ErrorCode::kUnsupported,
                   "the tokenizer has a token of " + std::to_string(token.size()) +
                       " bytes, more than the limit of " + std::to_string(kTokenBytesMax)};
    }
    // End tokens are never text.
    if (!trie->is_end(static_cast<int32_t>(trie->byte_starts_.size() - 1))) trie->bytes_ += token;
    trie->byte_starts_.push_back(static_cast<uint32_t>(trie->bytes_.size()));
  }
  std::vector<int32_t> plain;
  std::vector<int32_t> others;
  std::vector<std::vector<int32_t>> by_length(kPlainMaskLengths + 1);
  for (int32_t token = 0; token < trie->token_count(); ++token) {
    const std::string_view bytes = trie->bytes_of(token);
    if (bytes.empty()) continue;
    const uint32_t characters = plain_characters(bytes);
    (characters > 0 ? plain : others).push_back(token);
    if (characters == 0) continue;
    by_length[std::min(characters, kPlainMaskLengths)].push_back(token);
    trie->plain_characters_max_ = std::max(trie->plain_characters_max_, characters);
  }
  std::vector<uint64_t> mask(trie->mask_words());
  for (const auto& of_length : by_length) {
    for (const int32_t token : of_length) {
      mask[static_cast<size_t>(token) / 64] |= uint64_t{1} << (token % 64);
    }
    trie->plain_masks_.push_back(mask);
  }
  for (const int32_t token : plain) {
    trie->token_bytes_max_ = std::max(trie->token_bytes_max_, trie->bytes_of(token).size());
  }
  for (const int32_t token : others) {
    trie->token_bytes_max_ = std::max(trie->token_bytes_max_, trie->bytes_of(token).size());
  }
  trie->others_mask_.resize(trie->mask_words());
  for (const int32_t token : others) {
    trie->others_mask_[static_cast<size_t>(token) / 64] |= uint64_t{1} << (token % 64);
  }
  trie->plain_ = TreeBuilder(*trie, std::move(plain)).build();
  trie->others_ = TreeBuilder(*trie, std::move(others)).build();
  return std::shared_ptr<const VocabularyTrie>(std::move(trie));
}

std::string_view VocabularyTrie::bytes_of(int32_t token) const {
  if (token < 0 || token >= token_count()) return {};
  const auto index = static_cast<size_t>(token);
  return std::string_view(bytes_).substr(byte_starts_[index],
                                         byte_starts_[index + 1] - byte_starts_[index]);
}

bool VocabularyTrie::is_end(int32_t token) const {
  return std::find(end_tokens_.begin(), end_tokens_.end(), token) != end_tokens_.end();
}

std::span<const uint64_t> VocabularyTrie::plain_mask(uint32_t characters) const {
  return plain_masks_[characters >= plain_characters_max_
                          ? kPlainMaskLengths
                          : std::min(characters, kPlainMaskLengths - 1)];
}

uint32_t VocabularyTrie::plain_mask_characters(uint32_t characters) const {
  return characters >= plain_characters_max_ ? UINT32_MAX
                                             : std::min(characters, kPlainMaskLengths - 1);
}

}  // namespace lockstep
