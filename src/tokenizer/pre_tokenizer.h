// PreTokenizer: cuts a normalized text into pieces across which no tokens are merged. Immutable.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "json/json.h"
#include "tokenizer/regex.h"

namespace lockstep {

// A text and where its pieces lie in it, in order. Pieces may leave gaps: what is between is
// dropped. No piece is empty.
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
  // What becomes of the matches of a pattern.
  enum class Behavior {
    kIsolated,
    kRemoved,
    kMergedWithPrevious,
    kMergedWithNext,
    kContiguous,  // neighbouring matches are one piece
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
  // A space before each piece that has none.
  struct PrefixSpace {};
  // From here on the text is in the byte alphabet.
  struct ByteText {};
  using Step = std::variant<Split, Metaspace, PrefixSpace, ByteText>;

  // The "pre_tokenizer" of a tokenizer.json, or null for one that leaves the text whole.
  static Result<PreTokenizer> read(const Json* value);
  // Byte-level, with these patterns one after the other, all isolated.
  static Result<PreTokenizer> byte_level(const std::vector<std::string>& patterns);
  PreTokenizer() = default;
  explicit PreTokenizer(std::vector<Step> steps);

  // `text` is valid UTF-8. `starts_input`: nothing, not even an added token, comes before it. With
  // is_byte_level() the pieces are bytes for a byte-level model, cut anywhere.
  TextPieces cut(std::string text, bool starts_input) const;
  bool is_byte_level() const { return is_byte_level_; }

 private:
  std::vector<Step> steps_;
  bool is_byte_level_ = false;
};

}  // namespace lockstep
