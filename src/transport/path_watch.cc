#include "transport/path_watch.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <optional>

namespace lockstep {
namespace {

using std::chrono::milliseconds;

constexpr int kIdleSeconds = 1;  // before the first probe, and between two
constexpr int kQuestions = 3;    // then the kernel gives up, even if nothing checks
// A gap between two queries counts for at most this.
constexpr milliseconds kGapMax{100};
// The resolution of the kernel's clock for answers.
constexpr milliseconds kClockStep{10};
// After this many retransmissions silence is not one lost packet.
constexpr uint32_t kRepeatsMin = 2;

void set(int socket, int level, int option, int value) {
  // A test's local socket has none of these options, and needs none.
  static_cast<void>(::setsockopt(socket, level, option, &value, sizeof(value)));
}

#ifdef __linux__
std::optional<PathWatch::Counters> counters_of(int socket) {
  tcp_info info{};
  socklen_t length = sizeof(info);
  if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return std::nullopt;
  PathWatch::Counters counters;
  counters.unacknowledged = info.tcpi_unacked;
  counters.repeats = info.tcpi_retransmits;
  counters.probes = info.tcpi_probes;
  // Probes for room in the window back off.
  counters.is_idle_probe = info.tcpi_unacked == 0 && info.tcpi_backoff == 0;
  counters.answer_age = milliseconds(info.tcpi_last_ack_recv);
  return counters;
}
#else
std::optional<PathWatch::Counters> counters_of(int) {
  return std::nullopt;
}
#endif

}  // namespace

void PathWatch::prepare(int socket) {
  set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
#ifdef TCP_KEEPIDLE
  set(socket, IPPROTO_TCP, TCP_KEEPIDLE, kIdleSeconds);
#elif defined(TCP_KEEPALIVE)
  set(socket, IPPROTO_TCP, TCP_KEEPALIVE, kIdleSeconds);
#endif
  set(socket, IPPROTO_TCP, TCP_KEEPINTVL, kIdleSeconds);
  set(socket, IPPROTO_TCP, TCP_KEEPCNT, kQuestions);
#ifdef TCP_RXT_CONNDROPTIME
  set(socket, IPPROTO_TCP, TCP_RXT_CONNDROPTIME, 2 * kIdleSeconds);
#endif
}

bool PathWatch::is_dead(int socket) {
  const Time now = std::chrono::steady_clock::now();
  if (is_dead_ || now - looked_ < kLookEvery) return is_dead_;
  const auto counters = counters_of(socket);
  return counters && judge(*counters, now);
}

bool PathWatch::judge(const Counters& counters, Time now) {
  const std::chrono::nanoseconds gap = std::min<std::chrono::nanoseconds>(now - looked_, kGapMax);
  looked_ = now;
  const bool is_asking = counters.unacknowledged > 0 || counters.probes > 0;
  const bool is_answered = is_asking_ && counters.answer_age + kClockStep < now - asked_;
  if (!is_asking || !is_asking_ || is_answered) {
    is_asking_ = is_asking;
    asked_ = now;
    silence_ = std::chrono::nanoseconds(0);
    return is_dead_;
  }
  silence_ += gap;
  if (counters.is_idle_probe) {
    // The first probe may be lost; it was sent a second before the second one.
    is_dead_ = counters.probes >= kRepeatsMin &&
               silence_ > milliseconds(1000 * kIdleSeconds) + kIdleSilenceMax;
  } else {
    is_dead_ = std::max(counters.repeats, counters.probes) >= kRepeatsMin && silence_ > kSilenceMax;
  }
  return is_dead_;
}

}  // namespace lockstep
