// VocabularyTrie: the tokens of a tokenizer as a tree of their bytes, so that a byte which may not
// follow excludes all tokens with that prefix. Made once per tokenizer (about 0.1 s for 128k
// tokens); immutable, any thread may read it.
//
// Special tokens have no bytes here: a grammar names them by id, and text never spells them. Tokens
// of whole plain characters of a JSON string (no quote, backslash, control character or part of a
// character), most of any vocabulary, have their own tree, with prepared masks for strings that may
// have a given number of further characters.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "grammar/dfa/character_kinds.h"
#include "tokenizer/tokenizer.h"

namespace lockstep {

class VocabularyTrie {
 public:
  // In depth-first order: the first child of a node follows it.
  struct Node {
    uint32_t end;             // the node after this one's subtree
    uint32_t tokens;          // the node's own tokens end where the next node's begin
    uint16_t depth;           // bytes, 1 for the first
    uint16_t characters;      // whole characters up to here
    uint16_t characters_max;  // of the longest token in the subtree
    uint8_t byte;
    bool is_boundary : 1;    // a character ends here
    bool is_word_below : 1;  // only ASCII letters and digits follow in the subtree
  };
  struct Tree {
    std::vector<Node> nodes;      // with one extra at the end, for `tokens`
    std::vector<int32_t> tokens;  // in the order of the nodes
    // By node: all characters that begin after it in its subtree; continuation bytes do not count.
    std::vector<CharacterKinds> characters_below;
    size_t node_count() const { return nodes.size() - 1; }
    // The tokens of the nodes [first, last).
    std::span<const int32_t> tokens_of(uint32_t first, uint32_t last) const {
      return std::span(tokens).subspan(nodes[first].tokens,
                                       nodes[last].tokens - nodes[first].tokens);
    }
  };

  // `end_tokens` end an answer (end of text, end of turn) and are allowed where a text may end.
  // kInvalidArgument if one is not a token.
  static Result<std::shared_ptr<const VocabularyTrie>> build(const Tokenizer& tokenizer,
                                                             std::span<const int32_t> end_tokens);
  // Token i is tokens[i]; one without bytes is special.
  static Result<std::shared_ptr<const VocabularyTrie>> build(const std::vector<std::string>& tokens,
                                                             std::span<const int32_t> end_tokens);

  int32_t token_count() const { return static_cast<int32_t>(token_count_); }
  size_t token_bytes_max() const { return token_bytes_max_; }
  size_t mask_words() const { return (token_count_ + 63) / 64; }
  // Empty for special tokens and invalid ids.
  std::string_view bytes_of(int32_t token) const;
  bool is_end(int32_t token) const;
  std::span<const int32_t> end_tokens() const { return end_tokens_; }

  const Tree& plain() const { return plain_; }
  const Tree& others() const { return others_; }
  // All tokens of others().
  std::span<const uint64_t> others_mask() const { return others_mask_; }
  // The tokens of plain() with at most `characters` characters.
  std::span<const uint64_t> plain_mask(uint32_t characters) const;
  // The length, in characters, up to which plain_mask(characters) has all tokens.
  uint32_t plain_mask_characters(uint32_t characters) const;

 private:
  VocabularyTrie() = default;

  size_t token_count_ = 0;
  size_t token_bytes_max_ = 0;
  std::vector<uint32_t> byte_starts_;
  std::string bytes_;
  std::vector<int32_t> end_tokens_;
  Tree plain_;
  Tree others_;
  std::vector<std::vector<uint64_t>> plain_masks_;  // [i]: at most i characters; the last: all
  uint32_t plain_characters_max_ = 0;
  std::vector<uint64_t> others_mask_;
};

}  // namespace lockstep
