#include "cli/text/wait_line.h"

#include <fmt/core.h>

#include <cstdio>
#include <utility>

#include "cli/text/output.h"

namespace lockstep {

void WaitLine::show(std::string_view text, Clock::time_point now) {
  if (!manner_.is_terminal) return;
  const auto period = manner_.may_repaint ? Clock::duration(kRepaintPeriod) : kHeartbeat;
  // Without repainting the first line too waits for a heartbeat: most waits are short.
  if (!last_ && !manner_.may_repaint) last_ = now;
  if (last_ && now - *last_ < period) return;
  last_ = now;
  if (!manner_.may_repaint) {
    fmt::print(stderr, "{}\n", text);
    return;
  }
  show_progress(text);
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
