// JSON inside strings of a request has the limits of the request itself.
#include <doctest/doctest.h>

#include <string>

#include "base/threads/work.h"
#include "chat/calls/sampled_calls.h"
#include "chat/normalise.h"
#include "support/colliding_keys.h"

namespace lockstep {
namespace {

// The arguments of a call whose arguments a client sent as this string.
Json normalised(const std::string& arguments) {
  TemplateNeeds needs;
  needs.arguments = ArgumentsForm::kObject;
  JsonArray calls{JsonObject{{"function", JsonObject{{"name", "f"}, {"arguments", arguments}}}}};
  const Json messages = JsonArray{JsonObject{{"role", "assistant"}, {"tool_calls", calls}}};
  const Json done = normalised_messages(messages, needs);
  return *find(*find(find(done.get_array()[0], "tool_calls")->get_array()[0], "function"),
               "arguments");
}

std::string of_many_values() {
  std::string text = R"({"a":[)";
  for (size_t bytes = 0; bytes <= kParsedBytesMax; bytes += parsed_bytes("0,")) text += "0,";
  return text + "0]}";
}

}  // namespace

TEST_CASE("arguments beyond the limits of a request's JSON stay a text") {
  CHECK(normalised(R"({"a":1})") == Json(JsonObject{{"a", 1}}));
  for (const std::string& text : {of_many_values(), object_of(colliding_keys(8192))}) {
    const Json kept = normalised(text);
    REQUIRE(find(kept, "arguments") != nullptr);
    CHECK(find(kept, "arguments")->get_string().size() == text.size());
  }
}

TEST_CASE("calls with arguments beyond the limits are not remembered") {
  SampledCalls calls;
  const std::string text = object_of(colliding_keys(8192));
  calls.remember({.id = "a", .name = "f", .arguments = text});
  calls.remember({.id = "b", .name = "f", .arguments = R"({ "a": 1 })"});
  CHECK(!calls.find("a", parse_large_json(object_of({"k"})).value()));
  CHECK(calls.find("b", JsonObject{{"a", 1}}) == R"({ "a": 1 })");
}

}  // namespace lockstep
