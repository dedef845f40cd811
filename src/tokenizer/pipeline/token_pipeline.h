// PipelineTokenizer: the Tokenizer for all file formats: added tokens, normalizer, pre-tokenizer,
// model; and a decoder for the way back. The readers of the formats fill PipelineParts.
#pragma once

#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tokenizer/models/token_model.h"
#include "tokenizer/models/vocabulary.h"
#include "tokenizer/pipeline/added_tokens.h"
#include "tokenizer/pipeline/decoder.h"
#include "tokenizer/pipeline/normalizer.h"
#include "tokenizer/pipeline/pre_tokenizer.h"
#include "tokenizer/tokenizer.h"

namespace lockstep {

struct PipelineParts {
  std::shared_ptr<const Vocabulary> vocabulary;
  std::shared_ptr<const TokenModel> model;
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  Decoder decoder;
  AddedTokens raw_tokens;
  AddedTokens normalized_tokens;
  std::unordered_set<int32_t> special_ids;
  std::optional<int32_t> bos_id;
  std::optional<int32_t> end_id;
};

class PipelineTokenizer : public Tokenizer {
 public:
  explicit PipelineTokenizer(PipelineParts parts) : parts_(std::move(parts)) {}

  int vocab_size() const override { return parts_.vocabulary->size(); }
  std::optional<int32_t> bos_id() const override { return parts_.bos_id; }
  std::optional<int32_t> end_id() const override { return parts_.end_id; }
  bool is_special(int32_t id) const override { return parts_.special_ids.contains(id); }
  bool strips_leading_space() const override { return parts_.decoder.strips_leading_space(); }
  std::vector<int32_t> encode(std::string_view text, EncodeOptions options) const override;
  std::vector<int32_t> encode_pieces(std::span<const PromptText> pieces,
                                     bool add_bos) const override;
  Result<std::string> decode(std::span<const int32_t> ids) const override;
  std::string token_bytes(int32_t id) const override;

 private:
  void encode_plain(std::string_view text, bool starts_input, std::vector<int32_t>& ids) const;
  void encode_cut(std::string_view text, bool starts_input, std::vector<int32_t>& ids) const;

  PipelineParts parts_;
};

// Splits added tokens into raw and normalized ones. Special tokens are always matched in the raw
// text, even if the file says otherwise, so that the caller controls to the byte where they may
// match.
void set_added_tokens(std::vector<AddedToken> tokens, PipelineParts& parts);

}  // namespace lockstep
