#include "cli/top/top_screen.h"

#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string_view>

namespace lockstep {
namespace {

// The alternate screen without a cursor, and back.
constexpr std::string_view kEnterScreen = "\x1b[?1049h\x1b[?25l\x1b[2J";
constexpr std::string_view kLeaveScreen = "\x1b[?25h\x1b[?1049l";

constexpr int kEndSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
constexpr int kCrashSignals[] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL};

// For signal handlers, which may use nothing else.
termios before_screen{};
volatile sig_atomic_t is_screen_on = 0;
volatile sig_atomic_t is_end_asked = 0;
volatile sig_atomic_t was_stopped = 0;

// Only calls that signal-safety(7) allows.
void leave_screen() {
  if (is_screen_on == 0) return;
  is_screen_on = 0;
  const ssize_t written = ::write(STDOUT_FILENO, kLeaveScreen.data(), kLeaveScreen.size());
  static_cast<void>(written);  // the terminal may be gone
  ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &before_screen);
}

void enter_screen() {
  termios raw = before_screen;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ISIG | IEXTEN);
  raw.c_iflag &= ~static_cast<tcflag_t>(IXON | ICRNL);
  raw.c_cc[VMIN] = 0;
  raw.c_cc[VTIME] = 0;
  ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw);
  const ssize_t written = ::write(STDOUT_FILENO, kEnterScreen.data(), kEnterScreen.size());
  static_cast<void>(written);
  is_screen_on = 1;
}

void on_crash(int signal_number) {
  leave_screen();
  ::signal(signal_number, SIG_DFL);
  ::raise(signal_number);
}

// Somebody stops the program: the shell gets its terminal back.
void on_stop(int) {
  leave_screen();
  was_stopped = 1;
  ::raise(SIGSTOP);
}

void handle(int signal_number, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  ::sigaction(signal_number, &action, nullptr);
}

}  // namespace

TopScreen::TopScreen() {
  is_end_asked = 0;
  was_stopped = 0;
  ::tcgetattr(STDIN_FILENO, &before_screen);
  for (const int one : kEndSignals) handle(one, [](int) { is_end_asked = 1; });
  for (const int one : kCrashSignals) handle(one, on_crash);
  handle(SIGTSTP, on_stop);
  enter_screen();
}

TopScreen::~TopScreen() {
  leave_screen();
  for (const int one : kEndSignals) handle(one, SIG_DFL);
  for (const int one : kCrashSignals) handle(one, SIG_DFL);
  handle(SIGTSTP, SIG_DFL);
}

TopSize TopScreen::size() const {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) {
    return {};
  }
  return {.columns = size.ws_col, .rows = size.ws_row};
}

void TopScreen::draw(const std::vector<std::string>& lines) {
  if (was_stopped != 0) {
    was_stopped = 0;
    enter_screen();
    shown_.clear();
  }
  std::string out;
  if (shown_.size() != lines.size()) {
    out += "\x1b[2J";
    shown_.assign(lines.size(), "");
  }
  for (size_t i = 0; i < lines.size(); ++i) {
    if (shown_[i] == lines[i]) continue;
    out += fmt::format("\x1b[{};1H{}\x1b[K", i + 1, lines[i]);
    shown_[i] = lines[i];
  }
  if (out.empty()) return;
  std::fwrite(out.data(), 1, out.size(), stdout);
  std::fflush(stdout);
}

std::string TopScreen::typed() {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  if (::poll(&input, 1, 0) <= 0) return "";
  char buffer[256];
  const ssize_t got = ::read(STDIN_FILENO, buffer, sizeof(buffer));
  if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN)) {
    is_gone_ = (input.revents & (POLLHUP | POLLERR)) != 0 || got < 0;
  }
  return got > 0 ? std::string(buffer, static_cast<size_t>(got)) : "";
}

bool TopScreen::is_ending() const {
  return is_gone_ || is_end_asked != 0;
}

}  // namespace lockstep
