// Every case of tests/data/templates, and of the larger collection that is not shipped, if present
// (LOCKSTEP_SHARED_DIR, or ../shared next to the sources).
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "chat/rendered.h"
#include "chat/template_file.h"

namespace lockstep {
namespace {

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  REQUIRE_MESSAGE(file.good(), path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string string_of(const Json& json) {
  return std::string(json.as_string());
}

class CaseRunner {
 public:
  explicit CaseRunner(std::string folder) : folder_(std::move(folder)) {}

  void run(const Json& test, const Json& conversation) {
    ++count_;
    const std::string file = string_of(test.at("template"));
    const std::string where = file + " " + string_of(test.at("name"));
    JsonObject variables = test.at("extra").as_object();
    ChatTemplateInput input;
    input.now = parse_time(string_of(variables.at("now"))).value();
    variables.erase("now");
    input.messages = &conversation.at("messages");
    input.tools = &conversation.at("tools");
    input.request_variables = &variables;
    const auto pieces = loaded(file).render(input);
    if (const Json* expected = find(test, "expected")) {
      CHECK_MESSAGE(pieces.ok(), where);
      if (pieces.ok()) CHECK_MESSAGE(prompt_text(pieces.value()) == string_of(*expected), where);
      return;
    }
    const Json& error = test.at("expected_error");
    if (error.at("kind") != "raise_exception") return;
    CHECK_MESSAGE(!pieces.ok(), where);
    if (pieces.ok()) return;
    CHECK_MESSAGE(pieces.error().code == ErrorCode::kInvalidArgument, where);
    CHECK_MESSAGE(pieces.error().message == string_of(error.at("message")), where);
  }

  int count() const { return count_; }

 private:
  const ChatTemplate& loaded(const std::string& file) {
    const auto known = templates_.find(file);
    if (known != templates_.end()) return known->second.chat_template;
    auto model = load_model_template(folder_ + "/" + file);
    REQUIRE_MESSAGE(model.ok(), file);
    return templates_.emplace(file, model.value()).first->second.chat_template;
  }

  std::string folder_;
  std::map<std::string, ModelTemplate> templates_;
  int count_ = 0;
};

}  // namespace

TEST_CASE("published templates render as Python renders them") {
  const std::string folder = LOCKSTEP_SOURCE_DIR "/tests/data/templates";
  const Json file = json_of(read_text(folder + "/cases.json"));
  CaseRunner runner(folder);
  for (const Json& test : file.at("cases").as_array()) {
    runner.run(test, file.at("conversations").as_array().at(test.at("conversation").as_int64()));
  }
  CHECK(runner.count() == 221);
}

TEST_CASE("templates that are not shipped render as Python renders them") {
  const char* given = std::getenv("LOCKSTEP_SHARED_DIR");
  const std::string shared = given ? given : LOCKSTEP_SOURCE_DIR "/../shared";
  const std::string folder = shared + "/data/templates";
  if (!std::filesystem::is_directory(folder)) {
    MESSAGE("skipped: there is no " << folder);
    return;
  }
  CaseRunner runner(folder + "/jinja");
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/cases")) {
    const Json tests = json_of(read_text(entry.path().string()));
    for (const Json& test : tests.as_array()) {
      runner.run(test, test);
    }
  }
  MESSAGE(runner.count() << " cases");
  CHECK(runner.count() > 0);
}

}  // namespace lockstep
