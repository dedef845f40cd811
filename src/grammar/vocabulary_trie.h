// VocabularyTrie: the tokens of a tokenizer as a tree of their bytes, so that a byte which may not
// follow skips all tokens that begin so. Made once for each tokenizer (about 0.1 s for 128k
// tokens); immutable, any thread may read it.
//
// Special tokens have no bytes here: a grammar names them by id, and text never spells them.
// Tokens that are whole plain characters of a JSON string (no quote, backslash, control character
// or part of a character), most of any vocabulary, stand in a tree of their own, with ready masks
// for a string that may still have so many characters.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "grammar/character_kinds.h"
#include "tokenizer/tokenizer.h"

namespace lockstep {

class VocabularyTrie {
 public:
  // In depth-first order: the first child of a node follows it.
  struct Node {
    uint32_t end;             // the node after this one's subtree
    uint32_t tokens;          // the node's own tokens: up to the next node's
    uint16_t depth;           // bytes, 1 for the first
    uint16_t characters;      // whole characters up to here
    uint16_t characters_max;  // of the longest token in the subtree
    uint8_t byte;
    bool is_boundary : 1;    // a character ends here
    bool is_word_below : 1;  // only ASCII letters and digits follow in the subtree
  };
  struct Tree {
    std::vector<Node> nodes;      // one more than there are, for `tokens`
    std::vector<int32_t> tokens;  // in the order of the nodes
    // Of each node: all characters that begin behind it in its subtree. A byte that goes on with a
    // character that has begun is none.
    std::vector<CharacterKinds> characters_below;
    size_t node_count() const { return nodes.size() - 1; }
    // The tokens of the nodes [first, last).
    std::span<const int32_t> tokens_of(uint32_t first, uint32_t last) const {
      return std::span(tokens).subspan(nodes[first].tokens,
                                       nodes[last].tokens - nodes[first].tokens);
    }
  };

  // `end_tokens`: what ends an answer (end of text, end of turn). They are allowed where a text may
  // end. kInvalidArgument if one is no token.
  static Result<std::shared_ptr<const VocabularyTrie>> build(const Tokenizer& tokenizer,
                                                             std::span<const int32_t> end_tokens);
  // Token i is tokens[i]; one without bytes is special.
  static Result<std::shared_ptr<const VocabularyTrie>> build(const std::vector<std::string>& tokens,
                                                             std::span<const int32_t> end_tokens);

  int32_t token_count() const { return static_cast<int32_t>(token_count_); }
  size_t token_bytes_max() const { return token_bytes_max_; }
  size_t mask_words() const { return (token_count_ + 63) / 64; }
  // Nothing for special tokens and for ids that are none.
  std::string_view bytes_of(int32_t token) const;
  bool is_end(int32_t token) const;
  std::span<const int32_t> end_tokens() const { return end_tokens_; }

  const Tree& plain() const { return plain_; }
  const Tree& others() const { return others_; }
  // All tokens of others().
  std::span<const uint64_t> others_mask() const { return others_mask_; }
  // The tokens of plain() with at most so many characters.
  std::span<const uint64_t> plain_mask(uint32_t characters) const;
  // Of the mask that plain_mask() gives: tokens up to this length are in it.
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
