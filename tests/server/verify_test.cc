// stream_options.include_receipt and POST /v1/verify, with a model of bytes.
#include <doctest/doctest.h>

#include "access/api_keys.h"
#include "server/served.h"
#include "support/text.h"

namespace lockstep {
namespace {

constexpr const char* kVerifyPath = "/v1/verify";

JsonObject completion_fields() {
  return {{"prompt", "There"}, {"max_tokens", 20}, {"temperature", 0.5}, {"seed", 7}};
}

JsonObject chat_fields() {
  JsonArray messages;
  messages.push_back(JsonObject{{"role", "user"}, {"content", "There"}});
  return {{"messages", std::move(messages)}, {"max_tokens", 20}};
}

// An answer with its receipt, and what verifies it.
struct Receipted {
  Json last;  // the event that has the receipt
  JsonObject claim;
};

Receipted ask(Served& server, const std::string& route, JsonObject fields) {
  JsonObject asked = fields;
  asked["stream"] = true;
  asked["stream_options"] = JsonObject{{"include_receipt", true}};
  const std::string path = route == "chat" ? "/v1/chat/completions" : "/v1/completions";
  const Answer answer = server.post(path, dump_json(asked));
  REQUIRE_MESSAGE(answer.status == 200, answer.body);
  const auto events = stream_events(answer.body);
  REQUIRE(events.size() >= 2);
  Receipted receipted{.last = parse_json(events[events.size() - 2]).value(),
                      .claim = std::move(fields)};
  receipted.claim["route"] = route;
  receipted.claim["receipt"] = at(receipted.last, "lockstep", "receipt");
  receipted.claim["answer_ids"] = at(receipted.last, "lockstep", "answer_ids");
  return receipted;
}

Answer verify(Served& server, const JsonObject& claim) {
  return server.post(kVerifyPath, dump_json(claim));
}

std::string refusal_code(const Answer& answer) {
  return text_at(at(answer.json(), "error", "code"));
}

}  // namespace

TEST_CASE("an answer is verified in one request that has it as its guess") {
  for (const char* route : {"chat", "completions"}) {
    CAPTURE(route);
    Served server;
    server.model->says(" was a byte");
    const auto fields = route == std::string("chat") ? chat_fields() : completion_fields();
    const Receipted receipted = ask(server, route, fields);
    CHECK(at(receipted.last, "choices").get_array().empty());
    CHECK(at(receipted.last, "lockstep", "answer_ids").get_array().size() == 11);
    const Answer answer = verify(server, receipted.claim);
    REQUIRE_MESSAGE(answer.status == 200, answer.body);
    CHECK(at(answer.json(), "same") == true);
    CHECK(at(answer.json(), "matches_receipt") == true);
    CHECK(at(answer.json(), "ranks") == 2);
    CHECK(at(answer.json(), "seconds").as_double() >= 0);
    CHECK(find(answer.json(), "first_difference") == nullptr);
    const GenerateRequest asked = server.model->request(0).request;
    const GenerateRequest checked = server.model->request(1).request;
    CHECK(checked.prompt == asked.prompt);
    CHECK(checked.sampling == asked.sampling);  // the seed too, which the chat did not name
    CHECK(checked.stop_ids == asked.stop_ids);
    CHECK(checked.guess.size() == 11);
    CHECK(checked.guess.front() == ' ');
    CHECK(checked.max_tokens == 12);
  }
}

TEST_CASE("an answer can be verified by its text if that has the same tokens") {
  Served server;
  server.model->says(" was a byte");
  Receipted receipted = ask(server, "completions", completion_fields());
  receipted.claim.erase("answer_ids");
  receipted.claim["answer"] = " was a byte";
  CHECK(at(verify(server, receipted.claim).json(), "same") == true);
  receipted.claim["answer"] = " was a bite";
  const Json other = verify(server, receipted.claim).json();
  CHECK(at(other, "same") == false);
  CHECK(at(other, "first_difference") == 8);
  CHECK(at(other, "matches_receipt") == false);
}

TEST_CASE("a changed token is found at its place, and the rest is not computed") {
  Served server;
  server.model->says(" was a byte");
  const Receipted receipted = ask(server, "completions", completion_fields());
  for (const size_t changed : {0u, 5u, 10u}) {
    JsonObject claim = receipted.claim;
    claim["answer_ids"].as_array()[changed] = 'X';
    const Answer answer = verify(server, claim);
    REQUIRE(answer.status == 200);
    CHECK(at(answer.json(), "same") == false);
    CHECK(at(answer.json(), "first_difference") == changed);
  }
}

TEST_CASE("more or less than the whole answer is a difference at its end") {
  Served server;
  server.model->says(" was a byte");
  const Receipted receipted = ask(server, "completions", completion_fields());
  JsonObject longer = receipted.claim;
  longer["answer_ids"].as_array().emplace_back('s');
  CHECK(at(verify(server, longer).json(), "first_difference") == 11);
  JsonObject shorter = receipted.claim;
  shorter["answer_ids"].as_array().pop_back();
  const Json told = verify(server, shorter).json();
  CHECK(at(told, "same") == false);
  CHECK(at(told, "first_difference") == 10);
}

TEST_CASE("an answer that a length or a stop string ended is verified without an end") {
  Served server;
  server.model->says(" was a byte");
  JsonObject fields = completion_fields();
  fields["max_tokens"] = 4;
  Receipted receipted = ask(server, "completions", fields);
  CHECK(contains(text_at(receipted.claim["receipt"]), ":length:7"));
  CHECK(at(verify(server, receipted.claim).json(), "same") == true);
  CHECK(server.model->request(1).request.max_tokens == 4);
  // A beginning of the answer is right as far as it goes, but it is not what the receipt is of.
  receipted.claim["answer_ids"].as_array().pop_back();
  CHECK(at(verify(server, receipted.claim).json(), "first_difference") == 3);

  fields = completion_fields();
  fields["stop"] = "a b";
  const Receipted stopped = ask(server, "completions", fields);
  CHECK(contains(text_at(stopped.claim.at("receipt")), ":string:7"));
  CHECK(at(stopped.last, "lockstep", "answer_ids").get_array().size() == 8);
  CHECK(at(verify(server, stopped.claim).json(), "same") == true);
}

TEST_CASE("another model, prompt, option or seed is refused before anything is computed") {
  Served server;
  server.model->says("x");
  const Receipted receipted = ask(server, "completions", completion_fields());
  const std::vector<std::pair<const char*, Json>> changes{
      {"prompt", "Their"}, {"temperature", 0.6}, {"seed", 8}, {"top_k", 3}, {"stop", "y"}};
  for (const auto& [field, value] : changes) {
    JsonObject claim = receipted.claim;
    claim[field] = value;
    const Answer refused = verify(server, claim);
    CHECK_MESSAGE(refused.status == 409, field);
    CHECK_MESSAGE(refusal_code(refused) == "other_request", field);
  }
  JsonObject longer = receipted.claim;  // the length is the answer's
  longer["max_tokens"] = 500;
  CHECK(verify(server, longer).status == 200);
  server.model->set_identity(std::string(64, 'b'));
  const Answer other = verify(server, receipted.claim);
  CHECK(other.status == 409);
  CHECK(refusal_code(other) == "other_model");
  server.model->set_identity("");
  CHECK(refusal_code(verify(server, receipted.claim)) == "no_identity");
  CHECK(server.model->request_count() == 2);
}

TEST_CASE("a receipt of another version says so") {
  Served server;
  server.model->says("x");
  Receipted receipted = ask(server, "completions", completion_fields());
  std::string text = text_at(receipted.claim["receipt"]);
  text.replace(text.find("0.1.0"), 5, "9.9.9");
  text[text.find("aaaa")] = 'b';
  receipted.claim["receipt"] = text;
  const Answer refused = verify(server, receipted.claim);
  CHECK(refused.status == 409);
  CHECK(contains(message_of(refused), "with lockstep 9.9.9, this is 0.1.0"));
}

TEST_CASE("a claim that lacks something or is none is refused") {
  Served server;
  server.model->says("x");
  const Receipted receipted = ask(server, "completions", completion_fields());
  const auto refused = [&](const char* field, const Json& value) {
    JsonObject claim = receipted.claim;
    if (value.is_null()) {
      claim.erase(field);
    } else {
      claim[field] = value;
    }
    const Answer answer = verify(server, claim);
    CHECK_MESSAGE(answer.status == 400, field);
  };
  JsonArray two, texts, large(2000, 'x');
  two.emplace_back("a");
  two.emplace_back("b");
  texts.emplace_back("x");
  for (const auto& [field, value] :
       std::vector<std::pair<const char*, Json>>{{"receipt", nullptr},
                                                 {"receipt", "x"},
                                                 {"receipt", 1},
                                                 {"route", nullptr},
                                                 {"route", "messages"},
                                                 {"answer_ids", nullptr},
                                                 {"answer_ids", "x"},
                                                 {"answer_ids", texts},
                                                 {"answer_ids", JsonArray{-1}},
                                                 {"answer_ids", JsonArray{258}},
                                                 {"answer_ids", large},
                                                 {"answer", "x"},
                                                 {"n", 2},
                                                 {"prompt", two},
                                                 {"prompt", nullptr},
                                                 {"temperature", 9}}) {
    refused(field, value);
  }
  for (const char* body : {"", "{", "[]", "1"}) CHECK(server.post(kVerifyPath, body).status == 400);
  CHECK(server.get(kVerifyPath).status == 405);
  CHECK(server.post(kVerifyPath, std::string(200'000, ' ')).status == 413);
  CHECK(server.model->request_count() == 1);
}

TEST_CASE("receipts are of one answer of a model that something identifies") {
  Served server;
  server.model->says("x");
  const auto post = [&](const std::string& more) {
    return server.post("/v1/completions",
                       R"({"stream":true,"stream_options":{"include_receipt":true},)" + more + "}");
  };
  const Answer several = post(R"("prompt":"p","n":2)");
  CHECK(several.status == 400);
  CHECK(contains(message_of(several), "include_receipt"));
  CHECK(post(R"("prompt":["p","q"])").status == 400);
  server.model->set_identity("");
  const Answer nameless = post(R"("prompt":"p")");
  CHECK(nameless.status == 409);
  CHECK(refusal_code(nameless) == "no_identity");
  CHECK(server.model->request_count() == 0);
}

TEST_CASE("a whole answer has its receipt too, and none without asking") {
  Served server;
  server.model->says("x");
  const Answer plain = server.post("/v1/completions", R"({"prompt":"p"})");
  CHECK_FALSE(contains(plain.body, "receipt"));
  const Answer whole =
      server.post("/v1/completions", R"({"prompt":"p","stream_options":{"include_receipt":true}})");
  CHECK(text_at(at(whole.json(), "lockstep", "receipt")).starts_with("lockstep-receipt-1:"));
}

TEST_CASE("verifying needs what asking needs: a key, and no page of another site") {
  const TemporaryFolder folder;
  const auto path = folder.path() / kApiKeyFile;
  const std::string key = add_api_key(path, "laptop", 1).value();
  Served server([&](ServerOptions& options) { options.access.keys = path; });
  const auto post = [&](const std::string& headers) {
    std::string text = Served::post_text(kVerifyPath, "{}");
    return server.exchange(text.insert(text.find("\r\n") + 2, headers)).status;
  };
  CHECK(post("") == 401);
  CHECK(post("x-api-key: lk-wrong\r\n") == 401);
  CHECK(post("Origin: http://evil.example\r\n") == 403);
  CHECK(post("x-api-key: " + key + "\r\n") == 400);
}

TEST_CASE("a client that leaves ends its verification, and a lost group fails it") {
  Served server;
  server.model->says("abc");
  const Receipted receipted = ask(server, "completions", completion_fields());
  Served other;  // whose model waits for the test
  RawClient client(other.port());
  client.send(Served::post_text(kVerifyPath, dump_json(receipted.claim)));
  const FakeModel::Running running = other.model->request(0);
  running.token('a');
  client.close();
  CHECK(other.model->waits_for_cancel(running.id));
  RawClient second(other.port());
  second.send(Served::post_text(kVerifyPath, dump_json(receipted.claim)));
  const FakeModel::Running lost = other.model->request(1);
  lost.token('a');
  lost.end(Error{ErrorCode::kPeerLost, "rank 1 was lost"});
  const Answer failed = Served::parse(second.read_to_end());
  CHECK(failed.status == 503);
  RawClient third(other.port());
  third.send(Served::post_text(kVerifyPath, dump_json(receipted.claim)));
  const FakeModel::Running differing = other.model->request(2);
  differing.token('a');
  differing.token('x');
  CHECK(at(Served::parse(third.read_to_end()).json(), "first_difference") == 1);
  CHECK(other.model->waits_for_cancel(differing.id));
}

}  // namespace lockstep
