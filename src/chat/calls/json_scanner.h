// JsonScanner: finds the end of one JSON value in a text that arrives in pieces, by its strings and
// brackets alone. Used by the readers of tool calls; one thread. It drops a comma before a closing
// bracket, which JSON forbids. It accepts some invalid JSON (`{"a" 1}`); it rejects only text whose
// end cannot be determined.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep {

class JsonScanner {
 public:
  static constexpr size_t kDepthMax = 1000;

  enum class State {
    kMore,      // the value continues
    kComplete,  // the rest of the text is not part of the value
    kBroken,    // mismatched brackets, or no value
  };

  // Appends the value's part at the front of `text` to `out` and returns its size in `text`.
  // Escapes control characters inside strings, which JSON forbids. A number or word ends only at
  // the character after it, and a comma is held until then.
  size_t push(std::string_view text, std::string& out);
  // Appends a held comma: the text has ended.
  void flush(std::string& out);
  State state() const { return state_; }
  bool is_in_string() const { return is_in_string_; }

 private:
  bool take(char letter, std::string& out);  // false: the letter is not part of the value
  void take_in_string(char letter, std::string& out);
  void close(char bracket);

  std::string held_;  // a comma and the white space after it
  std::string open_;  // the brackets that will close the open ones
  bool is_in_string_ = false;
  bool is_escaped_ = false;
  bool has_begun_ = false;
  State state_ = State::kMore;
};

}  // namespace lockstep
