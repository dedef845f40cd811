// JsonScanner: finds the end of one JSON value in a text that comes in pieces, without looking at
// more than its strings and brackets. Used by the readers of tool calls; one thread. It accepts
// what a parser would refuse (`{"a" 1}`); what it refuses has no end that could be told.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep {

class JsonScanner {
 public:
  static constexpr size_t kDepthMax = 1000;

  enum class State {
    kMore,      // the value goes on
    kComplete,  // it has ended; the rest of the text is not part of it
    kBroken,    // brackets that do not match, or no value at all
  };

  // Takes the value's part of the front of `text`, appends it to `out` and gives its size. Control
  // characters inside strings, which JSON forbids, are escaped on the way. A number or a word ends
  // only with the letter behind it.
  size_t push(std::string_view text, std::string& out);
  State state() const { return state_; }

 private:
  bool take(char letter, std::string& out);  // false: the letter is not part of the value
  void take_in_string(char letter, std::string& out);
  void close(char bracket);

  std::string open_;  // the brackets that will close what is open
  bool is_in_string_ = false;
  bool is_escaped_ = false;
  bool has_begun_ = false;
  State state_ = State::kMore;
};

}  // namespace lockstep
