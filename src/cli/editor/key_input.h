// KeyInput: characters that are typed or pasted, from a terminal in raw mode: whole UTF-8, and a
// look at the terminal's size while it waits. SIGINT within an InterruptGuard is Ctrl-C. One
// thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

class KeyInput {
 public:
  explicit KeyInput(int fd) : fd_(fd) {}

  // Waits for a character; nullopt: the terminal is gone. Invalid bytes are U+FFFD. `on_resize` is
  // called after the terminal's size has changed.
  std::optional<uint32_t> next(const std::function<void()>& on_resize);
  // The text up to the mark that ends a bracketed paste, harmless: line ends are LF. Beyond
  // `bytes_max` it is read and dropped.
  std::string read_paste(size_t bytes_max);

 private:
  std::optional<char> next_byte(const std::function<void()>& on_resize);

  const int fd_;
  std::string pending_;  // read, not taken yet
  int columns_ = 0;
  int rows_ = 0;
};

// A paste without its end mark, as a message may hold it: CR and CR LF become LF, other control
// characters but tabs are left out.
std::string cleaned_paste(std::string_view text);

// The text to insert after `word`, the beginning of all `found`: what they have in common, and a
// space if there is only one. A folder's name gets no space.
std::string completion_of_word(std::string_view word, const std::vector<std::string>& found);

}  // namespace lockstep
