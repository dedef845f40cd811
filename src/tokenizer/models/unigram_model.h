// UnigramModel: finds the most probable split of a piece into tokens, like SentencePiece's unigram
// model and Hugging Face's Unigram (a Viterbi search). Immutable.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tokenizer/models/token_model.h"
#include "tokenizer/models/vocabulary.h"

namespace lockstep {

struct UnigramOptions {
  int32_t unknown_id = 0;
  bool has_byte_tokens = false;  // "<0x0A>" for unknown characters
};

class UnigramModel : public TokenModel {
 public:
  // `scores[id]`: the logarithm of the token's probability; tokens that `vocabulary` hides are not
  // used. kUnsupported if the tokens need too large a trie.
  static Result<std::shared_ptr<const UnigramModel>> make(const UnigramOptions& options,
                                                          const Vocabulary& vocabulary,
                                                          std::vector<double> scores);

  void encode(std::string_view piece, std::vector<int32_t>& ids) const override;

 private:
  static constexpr int32_t kNone = -1;
  struct TrieEdge {
    uint64_t key = 0;  // node << 8 | byte; 0 is free, because node 0 has no edges
    int32_t node = 0;
  };

  UnigramModel() = default;
  int32_t child(int32_t node, uint8_t byte) const;
  void insert(std::string_view text, int32_t id);
  size_t edge_of(uint64_t key) const;
  void append_unknown(std::string_view text, std::vector<int32_t>& ids) const;

  UnigramOptions options_;
  std::vector<double> scores_;
  double unknown_score_ = 0;
  std::vector<TrieEdge> edges_;         // open addressing, a power of two, at most half full
  std::vector<int32_t> token_of_node_;  // kNone: no token ends here; node 1 is the root
  std::array<std::optional<int32_t>, 256> byte_ids_;
};

}  // namespace lockstep
