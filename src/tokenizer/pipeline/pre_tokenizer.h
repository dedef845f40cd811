// PreTokenizer: splits a normalized text into pieces; no token crosses their borders. Immutable.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "json/json.h"
#include "tokenizer/text/regex.h"

namespace lockstep {

// A text and the positions of its pieces, in order. Gaps between pieces are dropped. No piece is
// empty.
struct TextPieces {
  struct Piece {
    size_t begin;
    size_t end;
  };
  std::string text;
  std::vector<Piece> pieces;

  std::string_view view(Piece piece) const {
    return std::string_view(text).substr(piece.begin, piece.end - piece.begin);
  }
};

class PreTokenizer {
 public:
  // How the matches of a pattern are treated.
  enum class Behavior {
    kIsolated,
    kRemoved,
    kMergedWithPrevious,
    kMergedWithNext,
    kContiguous,  // adjacent matches are one piece
  };
  struct Split {
    std::shared_ptr<const Regex> regex;
    Behavior behavior = Behavior::kIsolated;
    bool is_inverted = false;  // the gaps are the matches
  };
  enum class MarkPrefix { kNever, kFirst, kAlways };
  struct Metaspace {
    std::string mark;  // replaces each space
    MarkPrefix prefix = MarkPrefix::kNever;
    bool splits = false;  // before each mark
  };
  // Adds a space before each piece that has none.
  struct PrefixSpace {};
  // Converts the text to the byte alphabet.
  struct ByteText {};
  using Step = std::variant<Split, Metaspace, PrefixSpace, ByteText>;

  // The "pre_tokenizer" of a tokenizer.json, or null for one that leaves the text whole.
  static Result<PreTokenizer> read(const Json* value);
  // Byte-level, with these patterns in sequence, all isolated.
  static Result<PreTokenizer> byte_level(const std::vector<std::string>& patterns);
  PreTokenizer() = default;

  // `text` is valid UTF-8. `starts_input`: nothing, not even an added token, comes before it. With
  // is_byte_level() the pieces are bytes for a byte-level model, split anywhere.
  TextPieces cut(std::string text, bool starts_input) const;
  bool is_byte_level() const { return is_byte_level_; }

 private:
  explicit PreTokenizer(std::vector<Step> steps);

  std::vector<Step> steps_;
  bool is_byte_level_ = false;
};

}  // namespace lockstep
