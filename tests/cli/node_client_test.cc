#include "cli/client/node_client.h"

#include <doctest/doctest.h>

#include "json/json.h"

namespace lockstep {

TEST_CASE("a refusal for want of a key names the variable that holds it") {
  const auto text = [](const char* error) { return refusal_text(parse_json(error).value()); };
  CHECK(text(R"({"message":"an API key is needed","code":"invalid_api_key"})") ==
        "an API key is needed (this command sends the one in LOCKSTEP_API_KEY)");
  CHECK(text(R"({"message":"it is full","code":"overloaded"})") == "it is full");
  CHECK(text("[]").empty());
}

}  // namespace lockstep
