// BpeModel: one piece of text to token ids by byte-pair encoding, with bytes or an unknown token
// for what the vocabulary lacks. Immutable.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "json/json.h"
#include "tokenizer/pair_merger.h"
#include "tokenizer/vocabulary.h"

namespace lockstep {

class BpeModel {
 public:
  // The "model" of a tokenizer.json, with its vocabulary already read.
  static Result<BpeModel> read(const Json& model, const Vocabulary& vocabulary);

  // Appends the ids of `piece`, which is valid UTF-8. `vocabulary` is the one given to read().
  void encode(std::string_view piece, const Vocabulary& vocabulary,
              std::vector<int32_t>& ids) const;

 private:
  struct Options {
    std::optional<int32_t> unknown_id;
    bool fuses_unknown;  // neighbouring unknown characters are one unknown token
    bool has_byte_tokens;
    bool ignores_merges;  // a piece that is a token is that token
  };

  BpeModel(Options options, PairMerger merger) : options_(options), merger_(std::move(merger)) {}
  static Result<Options> read_options(const Json& model, const Vocabulary& vocabulary);
  bool append_bytes(std::string_view character, std::vector<int32_t>& symbols) const;

  Options options_;
  PairMerger merger_;
  std::array<std::optional<int32_t>, 256> byte_ids_;
};

}  // namespace lockstep
