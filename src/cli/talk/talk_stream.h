// TalkStream: reads a streamed answer of a node (chat or completion): its texts, how it ends, its
// figures. The events are untrusted. Pure but for the clock passed in; one thread.
#pragma once

#include <chrono>
#include <optional>

#include "cli/stream/event_reader.h"
#include "cli/talk/answerer.h"

namespace lockstep {

class TalkStream {
 public:
  using Clock = std::chrono::steady_clock;

  explicit TalkStream(Clock::time_point began) : began_(began) {}

  // Tells `events` the texts. kCorrupt: it is no such stream.
  Status take(const ServerEvent& event, Clock::time_point now, TalkEvents& events);

  bool is_done() const { return is_done_; }  // "[DONE]" has come
  bool has_text() const { return last_text_.has_value(); }
  // The texts and figures so far; those of the node where it gives them, else by the own clock.
  TalkAnswer answer() const;

 private:
  void take_choice(const Json& choice, Clock::time_point now, TalkEvents& events);
  void take_usage(const Json& usage);
  void take_progress(const Json& event);
  void take_timings(const Json& event);
  void add(std::string& to, std::string_view text, Clock::time_point now);

  const Clock::time_point began_;
  TalkAnswer answer_;
  std::optional<Clock::time_point> first_text_;
  std::optional<Clock::time_point> last_text_;
  int64_t pieces_ = 0;  // events with text: about a token each
  std::optional<double> node_first_s_;
  std::optional<double> node_tokens_s_;
  bool is_done_ = false;
};

}  // namespace lockstep
