// Ollama's API over real connections: requests of its clients and the answers they read.

#include "server/served_template.h"

namespace lockstep {
namespace {

const char* const kOllamaTools =
    R"("tools":[{"type":"function","function":{"name":"weather","description":"Of a city.",)"
    R"("parameters":{"type":"object","properties":{"city":{"type":"string"}}}}}],)";

// A server whose model has this chat template, or none.
class ServedOllama {
 public:
  explicit ServedOllama(const std::string& text = "") {
    if (text.empty()) return;
    auto format = ChatFormat::parse({text, "", {}});
    REQUIRE(format.ok());
    server.model->folder().chat_format = format.value();
  }

  Answer chat(const std::string& says, const std::string& fields,
              const std::string& messages = R"({"role":"user","content":"Rain?"})") {
    server.model->says(says);
    return server.post("/api/chat",
                       R"({"model":"tiny-model",)" + fields + R"("messages":[)" + messages + "]}");
  }
  Answer generate(const std::string& says, const std::string& fields) {
    server.model->says(says);
    return server.post("/api/generate", R"({"model":"tiny-model",)" + fields + "}");
  }
  std::string last_prompt() {
    const auto ids = server.model->request(server.model->request_count() - 1).request.prompt;
    return ByteTokenizer().decode(ids).value();
  }

  Served server;
};

// The lines of a streamed answer, without HTTP chunks.
std::vector<Json> lines_of(const Answer& answer) {
  std::string text;
  std::string_view body = answer.body;
  while (!body.empty()) {
    const size_t line = body.find("\r\n");
    REQUIRE(line != std::string_view::npos);
    const size_t size = std::stoul(std::string(body.substr(0, line)), nullptr, 16);
    text += body.substr(line + 2, size);
    body.remove_prefix(std::min(body.size(), line + 2 + size + 2));
  }
  std::vector<Json> lines;
  for (size_t from = 0; from < text.size();) {
    const size_t end = text.find('\n', from);
    REQUIRE(end != std::string::npos);
    auto parsed = parse_json(std::string_view(text).substr(from, end - from));
    REQUIRE(parsed.ok());
    lines.push_back(std::move(parsed.value()));
    from = end + 1;
  }
  return lines;
}

void check_figures(const Json& last, int64_t prompt, int64_t answer) {
  CHECK(at(last, "done") == true);
  CHECK(at(last, "prompt_eval_count") == prompt);
  CHECK(at(last, "eval_count") == answer);
  for (const char* name :
       {"total_duration", "load_duration", "prompt_eval_duration", "eval_duration"}) {
    CAPTURE(name);
    CHECK(at(last, name).is_int64());
    CHECK(at(last, name).get_int64() >= 0);
  }
  CHECK(at(last, "total_duration").get_int64() > 0);
}

}  // namespace

TEST_CASE("ollama: a chat is streamed as one object per line, unless streaming is off") {
  ServedOllama ollama;
  const Answer streamed = ollama.chat("abc", "");
  CHECK(streamed.status == 200);
  CHECK(streamed.has_header("Content-Type: application/x-ndjson\r\n"));
  const std::vector<Json> lines = lines_of(streamed);
  REQUIRE(lines.size() == 4);
  std::string content;
  for (size_t i = 0; i < lines.size(); ++i) {
    CHECK(at(lines[i], "model") == "org/Tiny-Model");
    CHECK(text_at(at(lines[i], "created_at")).size() == 27);
    CHECK(at(lines[i], "message", "role") == "assistant");
    CHECK(at(lines[i], "done") == (i == 3));
    content += text_at(at(lines[i], "message", "content"));
  }
  CHECK(content == "abc");
  CHECK(at(lines[3], "done_reason") == "stop");
  check_figures(lines[3], 6, 3);  // "Rain?" after the token that begins a text

  const Answer whole = ollama.chat("abc", R"("stream":false,)");
  CHECK(whole.has_header("Content-Type: application/json"));
  CHECK(at(whole.json(), "message", "content") == "abc");
  CHECK(at(whole.json(), "done_reason") == "stop");
  check_figures(whole.json(), 6, 3);
  const Answer cut = ollama.chat("abcdef", R"("stream":false,"options":{"num_predict":2},)");
  CHECK(at(cut.json(), "message", "content") == "ab");
  CHECK(at(cut.json(), "done_reason") == "length");
}

TEST_CASE("ollama: generate answers a prompt, with a system message and without a template") {
  ServedOllama ollama("{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}[answer]");
  const Answer answer =
      ollama.generate("ok", R"("prompt":"Why?","system":"Be brief.","stream":false)");
  CHECK(answer.status == 200);
  CHECK(at(answer.json(), "response") == "ok");
  CHECK(find(answer.json(), "message") == nullptr);
  CHECK(ollama.last_prompt() == "[system]Be brief.[user]Why?[answer]");
  CHECK(at(ollama.generate("ok", R"("prompt":"Why?","raw":true,"stream":false)").json(),
           "response") == "ok");
  CHECK(ollama.last_prompt() == "Why?");
  const std::vector<Json> lines = lines_of(ollama.generate("ok", R"("prompt":"Why?")"));
  REQUIRE(lines.size() == 3);
  CHECK(at(lines[0], "response") == "o");
  CHECK(at(lines[2], "response") == "");
  CHECK(at(lines[2], "done") == true);
}

TEST_CASE("ollama: calls are sent whole, with arguments as an object and content as a string") {
  ServedOllama ollama(template_file("Qwen-Qwen2.5-7B-Instruct.jinja"));
  const std::string call =
      "Let me see.\n<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": "
      "\"Paris\"}}\n</tool_call>";
  const Json message =
      at(ollama.chat(call, std::string(kOllamaTools) + R"("stream":false,)").json(), "message");
  CHECK(text_at(at(message, "content")).find("Let me see.") == 0);
  CHECK(at(message, "tool_calls", 0, "function", "name") == "weather");
  CHECK(dump_json(at(message, "tool_calls", 0, "function", "arguments")) == R"({"city":"Paris"})");
  CHECK(at(message, "tool_calls", 0, "function", "index") == 0);
  CHECK(text_at(at(message, "tool_calls", 0, "id")).starts_with("call_"));

  const std::vector<Json> lines = lines_of(ollama.chat(call, kOllamaTools));
  int calls = 0;
  for (const Json& line : lines) {
    CHECK(at(line, "message", "content").is_string());
    if (find(at(line, "message"), "tool_calls") == nullptr) continue;
    ++calls;
    CHECK(at(line, "message", "tool_calls", 0, "function", "arguments", "city") == "Paris");
    CHECK(at(line, "done") == false);
  }
  CHECK(calls == 1);
  CHECK(at(lines.back(), "done_reason") == "stop");
  // Arguments that are not an object make no call, and no text is lost.
  const Json broken =
      at(ollama
             .chat("<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": ",
                   std::string(kOllamaTools) + R"("stream":false,)")
             .json(),
         "message");
  CHECK(find(broken, "tool_calls") == nullptr);
  CHECK(text_at(at(broken, "content")).find("{\"city\":") != std::string::npos);
}

TEST_CASE("ollama: a call and its result are matched by the tool's name") {
  ServedOllama ollama(template_file("Qwen-Qwen2.5-7B-Instruct.jinja"));
  const Answer answer = ollama.chat(
      "ok", std::string(kOllamaTools) + R"("stream":false,)",
      R"({"role":"user","content":"Rain?"},{"role":"assistant","content":"","tool_calls":)"
      R"([{"function":{"name":"weather","arguments":{"city":"Paris"}}}]},)"
      R"({"role":"tool","tool_name":"weather","content":"11 degrees"})");
  CHECK(answer.status == 200);
  const std::string prompt = ollama.last_prompt();
  CHECK(prompt.find(R"({"name": "weather", "arguments": {"city": "Paris"}})") != std::string::npos);
  CHECK(prompt.find("<tool_response>\n11 degrees\n</tool_response>") != std::string::npos);
}

TEST_CASE("ollama: reasoning is sent as thinking, which can be off if the template supports it") {
  ServedOllama ollama(template_file("Qwen-Qwen3-0.6B.jinja"));
  const Answer answer = ollama.chat("<think>\nhm\n</think>\n\nyes", R"("stream":false,)");
  REQUIRE_MESSAGE(answer.status == 200, answer.body);
  CHECK(text_at(at(answer.json(), "message", "thinking")).find("hm") != std::string::npos);
  CHECK(at(answer.json(), "message", "content") == "yes");
  CHECK(ollama.chat("yes", R"("stream":false,"think":false,)").status == 200);
  CHECK(ollama.last_prompt().find("<think>\n\n</think>") != std::string::npos);
  CHECK(ollama.chat("yes", R"("stream":false,"think":"high",)").status == 200);
  CHECK(ollama.last_prompt().find("</think>") == std::string::npos);
  const Answer wrong = ollama.chat("yes", R"("think":"much",)");
  CHECK(wrong.status == 400);
  CHECK(at(wrong.json(), "error").is_string());

  ServedOllama plain("{{ messages[0].content }}");
  const Answer refused = plain.chat("yes", R"("think":true,)");
  CHECK(refused.status == 400);
  CHECK(at(refused.json(), "error") == "\"org/Tiny-Model\" does not support thinking");
  CHECK(plain.chat("yes", R"("think":false,)").status == 200);
}

TEST_CASE("ollama: an empty request only loads the model") {
  ServedOllama ollama;
  for (const char* fields : {"", R"("keep_alive":-1,)", R"("keep_alive":"5m",)"}) {
    const Answer answer = ollama.chat("x", std::string(fields) + R"("stream":false,)", "");
    CHECK(answer.status == 200);
    CHECK(at(answer.json(), "done_reason") == "load");
    CHECK(at(answer.json(), "done") == true);
    CHECK(at(answer.json(), "message", "content") == "");
  }
  const Answer generate = ollama.generate("x", R"("stream":false)");
  CHECK(at(generate.json(), "response") == "");
  CHECK(at(generate.json(), "done_reason") == "load");
  const Answer unload = ollama.generate("x", R"("keep_alive":0)");
  CHECK(unload.status == 501);
  CHECK(text_at(at(unload.json(), "error")).find("lockstep unload") != std::string::npos);
  CHECK(ollama.server.model->request_count() == 0);
  CHECK(ollama.chat("x", R"("keep_alive":"soon",)").status == 400);
}

TEST_CASE("ollama: options reach the model, with Ollama's defaults") {
  ServedOllama ollama;
  CHECK(ollama.chat("x", "").status == 200);
  const SamplingOptions usual = ollama.server.model->request(0).request.sampling;
  CHECK(usual.temperature == 0.8f);
  CHECK(usual.top_p == 0.9f);
  CHECK(usual.top_k == 40);
  const Answer answer = ollama.chat(
      "abc", R"("stream":false,"options":{"temperature":0,"top_k":5,"top_p":0.5,"seed":7,)"
             R"("num_predict":9,"stop":["c"],"repeat_penalty":1.1,"num_ctx":4096,"num_gpu":1},)");
  CHECK(at(answer.json(), "message", "content") == "ab");
  const GenerateRequest request = ollama.server.model->request(1).request;
  CHECK(request.sampling.temperature == 0);
  CHECK(request.sampling.top_k == 5);
  CHECK(request.sampling.top_p == 0.5f);
  CHECK(request.sampling.seed == 7);
  CHECK(request.sampling.repetition_penalty == 1.1f);
  CHECK(request.max_tokens == 9);
  CHECK(answer.has_header("x-lockstep-ignored-fields: options.num_ctx, options.num_gpu\r\n"));
  ollama.server.model->folder().sampling.temperature = 0.3f;
  CHECK(ollama.chat("x", "").status == 200);
  CHECK(ollama.server.model->request(2).request.sampling.temperature == 0.3f);
}

TEST_CASE("ollama: a format constrains the answer to JSON, and an invalid one is refused") {
  ServedOllama ollama("{{ messages[0].content }}");
  CHECK(ollama.chat("{}", R"("format":"json",)").status == 200);
  CHECK(!ollama.server.model->request(0).request.constraint.empty());
  CHECK(ollama
            .chat("{}", R"("format":{"type":"object","properties":{"age":{"type":"integer"}},)"
                        R"("required":["age"]},)")
            .status == 200);
  CHECK(ollama.server.model->request(1).request.constraint.find("age") != std::string::npos);
  CHECK(ollama.chat("x", R"("format":"",)").status == 200);
  CHECK(ollama.server.model->request(2).request.constraint.empty());
  CHECK(ollama.chat("x", R"("format":"xml",)").status == 400);
  CHECK(ollama.generate("x", R"("prompt":"a","raw":true,"format":"json")").status == 400);
}

TEST_CASE("ollama: refusals are one sentence in Ollama's shape, before anything is streamed") {
  ServedOllama ollama;
  const auto sentence = [](const Answer& answer, int status) {
    CHECK_MESSAGE(answer.status == status, answer.body);
    return text_at(at(answer.json(), "error"));
  };
  Served& server = ollama.server;
  CHECK(sentence(server.post("/api/chat", R"({"model":"other","messages":[]})"), 404)
            .find("not loaded") != std::string::npos);
  CHECK(sentence(server.post("/api/chat", "{"), 400).find("JSON") != std::string::npos);
  CHECK(sentence(server.post("/api/chat", "{}"), 400) == "\"model\" is required");
  CHECK(sentence(server.get("/api/chat"), 405).find("POST") != std::string::npos);
  CHECK(sentence(server.get("/api/nothing"), 404).find("no route") != std::string::npos);
  for (const char* path :
       {"/api/pull", "/api/push", "/api/create", "/api/copy", "/api/blobs/sha256:00"}) {
    CHECK(sentence(server.post(path, "{}"), 501).find("lockstep") == 0);
  }
  CHECK(sentence(server.exchange("DELETE /api/delete HTTP/1.1\r\nHost: localhost\r\n"
                                 "Connection: close\r\n\r\n"),
                 501)
            .find("lockstep") == 0);
  CHECK(sentence(ollama.chat("x", "", R"({"role":"user","content":"a","images":["AA=="]})"), 400)
            .find("images") == 0);
  CHECK(sentence(ollama.generate("x", R"("prompt":"a","images":["AA=="])"), 400).find("images") ==
        0);
  server.model->refuses({ErrorCode::kExhausted, "the queue is full"});
  const Answer busy = ollama.chat("x", "");
  CHECK(sentence(busy, 429) == "the queue is full");
  CHECK(busy.has_header("Retry-After: 1\r\n"));
}

TEST_CASE("ollama: an error in a stream is its last line") {
  ServedOllama ollama;
  RawClient client(ollama.server.port());
  client.send(Served::post_text("/api/chat", R"({"model":"tiny-model","messages":[{"role":"user",)"
                                             R"("content":"a"}]})"));
  const FakeModel::Running running = ollama.server.model->request(0);
  FakeModel::say(running, "ab");
  running.end(Error{ErrorCode::kPeerLost, "rank 1 died"});
  const std::vector<Json> lines = lines_of(Served::parse(client.read_to_end()));
  REQUIRE(lines.size() == 3);
  CHECK(at(lines[2], "error") == "rank 1 died");
}

TEST_CASE("ollama: embeddings of one text, of several and of too long ones") {
  ServedOllama ollama;
  ollama.server.model->embeds([](const std::vector<int32_t>& ids) {
    return std::vector<float>{3, static_cast<float>(ids.size() > 900 ? 0 : 4)};
  });
  const Json one =
      ollama.server.post("/api/embed", R"({"model":"tiny-model","input":"ab"})").json();
  CHECK(at(one, "model") == "org/Tiny-Model");
  CHECK(dump_json(at(one, "embeddings")) == "[[0.6,0.8]]");
  CHECK(at(one, "prompt_eval_count") == 4);  // with the tokens that surround a text
  CHECK(at(one, "total_duration").get_int64() > 0);
  const Json two =
      ollama.server.post("/api/embed", R"({"model":"tiny-model","input":["a","b"]})").json();
  CHECK(at(two, "embeddings").get_array().size() == 2);
  CHECK(
      dump_json(at(ollama.server.post("/api/embed", R"({"model":"tiny-model","input":[]})").json(),
                   "embeddings")) == "[]");
  const std::string text(2000, 'x');
  const std::string long_one = R"({"model":"tiny-model","input":")" + text + "\"}";
  CHECK(at(ollama.server.post("/api/embed", long_one).json(), "embeddings", 0, 0)
            .to_number<double>() == 1);
  CHECK(ollama.server.model->request(3).request.prompt.size() == 1000);
  CHECK(ollama.server.model->request(3).request.prompt.back() == 257);
  CHECK(
      ollama.server
          .post("/api/embed", R"({"model":"tiny-model","truncate":false,"input":")" + text + "\"}")
          .status == 400);
  CHECK(ollama.server.post("/api/embeddings", R"({"model":"tiny-model:latest","prompt":"ab"})")
            .body == R"({"embedding":[0.6,0.8]})");
  CHECK(ollama.server.post("/api/embed", R"({"model":"tiny-model","input":5})").status == 400);
}

TEST_CASE("ollama: clients can detect the server") {
  ServedOllama ollama;
  const auto ask = [&](const std::string& method, const std::string& headers) {
    return ollama.server.exchange(method + " / HTTP/1.1\r\nHost: localhost\r\n" + headers +
                                  "Connection: close\r\n\r\n");
  };
  CHECK(ask("HEAD", "").status == 200);
  CHECK(ask("GET", "Accept: */*\r\n").body == "Ollama is running");
  CHECK(ask("GET", "Accept: text/html,*/*;q=0.8\r\n").has_header("Content-Type: text/html"));
  const std::string version = text_at(at(ollama.server.get("/api/version").json(), "version"));
  CHECK(version.find("0.12.") == 0);
}

}  // namespace lockstep
