#include "cli/text/transfer_text.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

using namespace lockstep;

TEST_CASE("a bar fills by eighths of a character and always has the same width") {
  CHECK(bar_text(0, 3) == "   ");
  CHECK(bar_text(1, 3) == "███");
  CHECK(bar_text(0.5, 3) == "█▌ ");
  CHECK(bar_text(1.0 / 24, 3) == "▏  ");
  CHECK(bar_text(7, 2) == "██");
  CHECK(bar_text(-1, 2) == "  ");
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
