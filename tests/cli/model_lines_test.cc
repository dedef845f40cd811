#include "cli/client/model_lines.h"

#include <doctest/doctest.h>

using namespace lockstep;

TEST_CASE("each model is one line, whatever is known of it") {
  const auto status = parse_json(R"({"models": [
      {"name": "tiny", "state": "ready", "context": 512, "running": 3,
       "ranks": [{"weight_bytes": 1048576, "state_bytes": 1048576}]},
      {"name": "org/Large-Model", "state": "loading", "phase": "loading", "context": 0,
       "running": 0, "ranks": [], "placement": [
         {"rank": 0, "node_name": "anna", "bytes": 1073741824, "group": 1},
         {"rank": 1, "node_name": "berta", "bytes": 1073741824, "group": 1}]},
      {"name": "odd"}]})");
  REQUIRE(status.ok());
  const auto lines = model_lines(status.value());
  REQUIRE(lines.size() == 4);
  CHECK(lines[0].starts_with("MODEL            STATE"));
  CHECK(lines[1].find("ready") != std::string::npos);
  CHECK(lines[1].find("512") != std::string::npos);
  CHECK(lines[1].ends_with("1 rank here"));
  CHECK(lines[2].find("loading") != std::string::npos);
  CHECK(lines[2].ends_with("2 ranks on anna and berta"));
  CHECK(lines[3].starts_with("odd"));
  CHECK(lines[3].ends_with("-"));
}

TEST_CASE("without models there is no line") {
  CHECK(model_lines(parse_json(R"({"models": []})").value()).empty());
  CHECK(model_lines(parse_json("{}").value()).empty());
}
