#include "cli/text/transfer_text.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

using namespace lockstep;

TEST_CASE("a bar fills by eighths of a character and always has the same width") {
  CHECK(bar_text(0, 3, true) == "   ");
  CHECK(bar_text(1, 3, true) == "███");
  CHECK(bar_text(0.5, 3, true) == "█▌ ");
  CHECK(bar_text(1.0 / 24, 3, true) == "▏  ");
  CHECK(bar_text(7, 2, true) == "██");
  CHECK(bar_text(-1, 2, true) == "  ");
  CHECK(bar_text(0.5, 4, false) == "##..");
  CHECK(bar_text(7, 2, false) == "##");
}

TEST_CASE("times are shown as on a clock, and unknown ones as a dash") {
  CHECK(duration_text(0) == "0:00");
  CHECK(duration_text(4.2) == "0:05");
  CHECK(duration_text(727) == "12:07");
  CHECK(duration_text(10'812) == "3:00:12");
  CHECK(duration_text(1e9) == "-");
  CHECK(duration_text(std::nan("")) == "-");
  CHECK(duration_text(std::numeric_limits<double>::infinity()) == "-");
}

TEST_CASE("progress is bytes, rate and time left; a stall has a rate of 0 and no time") {
  CHECK(progress_text(12'500'000, 93'400'000, 6.2e6) ==
        "12.50 MB of 93.40 MB, 6.20 MB/s, 0:14 left");
  CHECK(progress_text(12'500'000, 93'400'000, 0) == "12.50 MB of 93.40 MB, 0.00 KB/s");
  CHECK(progress_text(93'400'001, 93'400'000, 2e6) == "93.40 MB of 93.40 MB, 2.00 MB/s, 0:00 left");
}
