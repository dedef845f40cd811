#include "transport/metered_link.h"

#include <doctest/doctest.h>

#include "transport/pipe_link.h"

using namespace lockstep;

TEST_CASE("a metered link counts the frames that it sends and those that are taken from it") {
  auto links = open_pipe_links(2);
  const auto of_low = std::make_shared<LinkMeters>(2), of_high = std::make_shared<LinkMeters>(2);
  MeteredLink low(std::move(links[0][1]), of_low, 1), high(std::move(links[1][0]), of_high, 0);
  const LinkMeter &sent = (*of_low)[1], &taken = (*of_high)[0];
  for (const size_t bytes : {100, 28}) {
    REQUIRE(low.acquire(bytes).size() == bytes);
    low.post();
    while (!low.flush()) {
    }
  }
  CHECK(sent.read(1) == LinkReading{.peer = 1, .bytes = 128});
  CHECK(taken.read(0).bytes == 0);
  while (high.peek().empty()) high.wait_readable(std::chrono::milliseconds(10));
  CHECK(high.peek().size() == 100);
  CHECK(taken.read(0).bytes == 0);  // not taken yet
  high.release();
  while (high.peek().empty()) high.wait_readable(std::chrono::milliseconds(10));
  high.release();
  CHECK(taken.read(0) == LinkReading{.peer = 0, .bytes = 128});
  CHECK(high.peek().empty());
  {
    const LinkMeters::Pause pause(of_low);
    REQUIRE(low.acquire(50).size() == 50);
    low.post();
  }
  CHECK(sent.read(1).bytes == 128);
  CHECK(low.frame_bytes_max() == high.frame_bytes_max());
  CHECK(low.health().ok());
}
