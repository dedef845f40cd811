// TopScreen: the terminal's alternate screen in raw mode, which is left again however the program
// ends: by return, by SIGINT, SIGTERM, SIGHUP or SIGQUIT, by a crash's signal, and while it is
// stopped. One at a time, on the main thread. Sources: termios(3), xterm's control sequences.
#pragma once

#include <string>
#include <vector>

#include "cli/top/top_frame.h"

namespace lockstep {

class TopScreen {
 public:
  TopScreen();
  ~TopScreen();
  TopScreen(const TopScreen&) = delete;
  TopScreen& operator=(const TopScreen&) = delete;

  // The terminal's size now.
  TopSize size() const;
  // Draws the lines that differ from those on the screen.
  void draw(const std::vector<std::string>& lines);
  // The bytes that have been typed; does not wait. Empty: nothing.
  std::string typed();
  // A signal asks the program to end, or the terminal is gone.
  bool is_ending() const;

 private:
  std::vector<std::string> shown_;
  bool is_gone_ = false;
};

}  // namespace lockstep
