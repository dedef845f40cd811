#include "router/sse_events.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace lockstep {

TEST_CASE("complete events are passed on at once, the rest when it is complete") {
  SseEvents events;
  CHECK(events.take("data: 1\n\n") == "data: 1\n\n");
  CHECK(events.take("data: 2\n\ndata: 3\n\ndata:") == "data: 2\n\ndata: 3\n\n");
  CHECK(events.take(" 4\n") == "");
  CHECK(events.take("\ndata: [DO") == "data: 4\n\n");
  CHECK(events.take_rest() == "data: [DO");
  CHECK(events.take_rest() == "");
}

TEST_CASE("lines may end with carriage returns, split anywhere") {
  const std::string text = "data: 1\r\n\r\n: still here\r\n\r\ndata: 2\r\n\r\n";
  SseEvents events;
  std::string taken;
  for (const char c : text) {
    const std::string whole = events.take(std::string(1, c));
    if (!whole.empty()) CHECK(whole.ends_with("\r\n\r\n"));
    taken += whole;
  }
  CHECK(taken == text);
  CHECK(events.take_rest().empty());
}

TEST_CASE("an event that never ends is passed on in pieces") {
  SseEvents events;
  CHECK(events.take(std::string(SseEvents::kEventBytesMax, 'x')).empty());
  CHECK(events.take("y").size() == SseEvents::kEventBytesMax + 1);
  CHECK(events.take_rest().empty());
}

}  // namespace lockstep
