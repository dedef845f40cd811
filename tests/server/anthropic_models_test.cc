// The list of models in Anthropic's shape, for clients that identify as Anthropic's.
#include "server/anthropic/anthropic_models.h"

#include "server/served.h"

namespace lockstep {
namespace {

Answer ask(Served& server, const std::string& target) {
  return server.exchange("GET " + target +
                         " HTTP/1.1\r\nHost: localhost\r\nanthropic-version: 2023-06-01\r\n"
                         "Connection: close\r\n\r\n");
}

ModelServices named(const std::vector<std::string>& names) {
  ModelServices models;
  for (const std::string& name : names) {
    auto model = std::make_shared<FakeModel>();
    model->set_name(name);
    models.push_back(std::move(model));
  }
  return models;
}

// The ids of a page, followed by "+" if there are more: "a b +".
std::string page(Served& server, const std::string& query) {
  const Answer answer = ask(server, "/v1/models" + query);
  REQUIRE_MESSAGE(answer.status == 200, answer.body);
  const Json list = answer.json();
  const JsonArray data = at(list, "data").get_array();
  std::string text;
  for (const Json& model : data) text += text_at(at(model, "id")) + " ";
  const Json none;
  CHECK(at(list, "first_id") == (data.empty() ? none : at(data.front(), "id")));
  CHECK(at(list, "last_id") == (data.empty() ? none : at(data.back(), "id")));
  return text + (at(list, "has_more") == true ? "+" : ".");
}

std::string page_of(const std::string& query) {
  const auto parsed = parse_model_page(query);
  if (!parsed.ok()) return "refused " + parsed.error().param;
  return std::to_string(parsed.value().limit) + " " + parsed.value().after_id + " " +
         parsed.value().before_id;
}

}  // namespace

TEST_CASE("models have Anthropic's shape only for its clients") {
  Served server;
  CHECK(ask(server, "/v1/models").body ==
        R"({"has_more":false,"first_id":"org/Tiny-Model","last_id":"org/Tiny-Model","data":[)"
        R"({"type":"model","id":"org/Tiny-Model","display_name":"org/Tiny-Model",)"
        R"("created_at":"1970-01-01T00:00:00Z","max_input_tokens":1000,"max_tokens":1000}]})");
  CHECK(at(ask(server, "/v1/models/tiny-model").json(), "type") == "model");
  CHECK(at(ask(server, "/v1/models/tiny-model").json(), "id") == "org/Tiny-Model");
  CHECK(at(server.get("/v1/models/tiny-model").json(), "object") == "model");
  CHECK(at(server.get("/v1/models").json(), "object") == "list");
  server.model->set_context(0);
  CHECK(at(ask(server, "/v1/models").json(), "data", 0, "max_tokens") == Json(nullptr));
}

TEST_CASE("models can be paged forwards and backwards") {
  Served server([](ServerOptions&) {}, nullptr, named({"a", "b", "c d", "e"}));
  CHECK(page(server, "") == "a b c d e org/Tiny-Model .");
  CHECK(page(server, "?limit=2") == "a b +");
  CHECK(page(server, "?limit=2&after_id=b") == "c d e +");
  CHECK(page(server, "?limit=2&after_id=e") == "org/Tiny-Model .");
  CHECK(page(server, "?after_id=org%2FTiny-Model") == ".");
  CHECK(page(server, "?limit=2&before_id=e") == "b c d +");
  CHECK(page(server, "?limit=3&before_id=c+d") == "a b .");
  CHECK(page(server, "?before_id=a") == ".");
}

TEST_CASE("an invalid page is refused in Anthropic's shape") {
  Served server;
  const Answer unknown = ask(server, "/v1/models?after_id=gone");
  CHECK(unknown.status == 400);
  CHECK(at(unknown.json(), "type") == "error");
  CHECK(at(unknown.json(), "error", "type") == "invalid_request_error");
  CHECK(at(unknown.json(), "error", "message") ==
        "after_id is not the id of a model that is loaded: ask for the list from its beginning");
  CHECK(at(ask(server, "/v1/models/gone").json(), "error", "type") == "not_found_error");
  CHECK(at(ask(server, "/v1/nothing").json(), "error", "type") == "not_found_error");
  CHECK(page_of("") == "20  ");
  CHECK(page_of("limit=1000&&x&beta=true&after_id=") == "1000  ");
  CHECK(page_of("limit=1&before_id=a%2Bb+c") == "1  a+b c");
  CHECK(page_of("limit=0") == "refused limit");
  CHECK(page_of("limit=1001") == "refused limit");
  CHECK(page_of("limit=-1") == "refused limit");
  CHECK(page_of("limit=2x") == "refused limit");
  CHECK(page_of("limit") == "refused limit");
  CHECK(page_of("after_id=%4") == "refused after_id");
  CHECK(page_of("after_id=%ff") == "refused after_id");
  CHECK(page_of("after_id=a&before_id=b") == "refused before_id");
}

}  // namespace lockstep
