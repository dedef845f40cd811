#include "cli/text/wait_line.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <utility>

#include "cli/text/output.h"

namespace lockstep {
namespace {

// Of the terminal of stderr or stdout; 80 if unknown.
size_t terminal_columns() {
  constexpr size_t kColumnsUnknown = 80;
  for (const int fd : {STDERR_FILENO, STDOUT_FILENO}) {
    winsize size{};
    if (::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  }
  return kColumnsUnknown;
}

}  // namespace

void WaitLine::show(std::string_view text, Clock::time_point now) {
  const auto period = manner_.may_repaint ? Clock::duration(kRepaintPeriod) : kHeartbeat;
  // Without repainting the first line too waits for a heartbeat: most waits are short.
  if (!last_ && !manner_.may_repaint) last_ = now;
  if (last_ && now - *last_ < period) return;
  last_ = now;
  if (!manner_.may_repaint) {
    fmt::print(stderr, "{}\n", text);
    return;
  }
  // A line that wraps could not be replaced.
  const size_t columns = terminal_columns() - 1;
  const std::string line =
      columns_of(text) > columns ? fit_columns(text, columns, manner_.has_utf8) : std::string(text);
  show_progress(styled(manner_, TextStyle::kDim, line));
  is_shown_ = true;
}

void WaitLine::clear() {
  last_.reset();
  if (std::exchange(is_shown_, false)) clear_progress();
}

void print_dim(const TerminalManner& manner, std::string_view text) {
  fmt::print(stderr, "{}\n", styled(manner, TextStyle::kDim, text));
}

}  // namespace lockstep
