#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cli/client/node_client.h"
#include "cli/top/top_frame.h"

namespace lockstep {
namespace {

TopFacts some_facts(int machines = 2) {
  TopFacts facts;
  facts.address = "localhost:8600";
  JsonArray nodes, meters;
  for (int i = 0; i < machines; ++i) {
    const std::string id = std::to_string(i);
    nodes.push_back(JsonObject{{"id", id}, {"name", "box" + id}, {"state", "alive"}});
    meters.push_back(JsonObject{{"node", id},
                                {"cpu_percent", 10 * i},
                                {"power_w", 20},
                                {"memory_bytes", 64e9},
                                {"memory_used_bytes", 16e9}});
  }
  const JsonObject model{
      {"name", "qwen3"},
      {"phase", "ready"},
      {"state", "ready"},
      {"links", JsonArray{JsonObject{
                    {"a", 0}, {"b", 1}, {"path", "tcp"}, {"p50_us", 30}, {"gbit_s", 9.4}}}}};
  const JsonObject status{{"version", "1"},
                          {"nodes", std::move(nodes)},
                          {"models", JsonArray{model}},
                          {"control", true},
                          {"cluster", "1"}};
  CHECK(facts.cluster.take({"snapshot", dump_json(status)}).ok());
  const JsonObject now{
      {"nodes", std::move(meters)},
      {"models", JsonArray{JsonObject{
                     {"name", "qwen3"}, {"tokens_s", 23.1}, {"running", 1}, {"waiting", 0}}}}};
  CHECK(facts.cluster.take({"meters", dump_json(now)}).ok());
  CHECK(facts.cluster.take({"happened", R"({"at_ms":0,"sentence":"box0 \u001b[2J joined"})"}).ok());
  facts.requests = parse_json(R"({"requests":[{"model":"qwen3","phase":"answer","tokens":40,
      "age_s":4,"prompt_tokens":12,"client":"laptop"}]})")
                       .value();
  return facts;
}

TerminalManner plain_manner(bool has_utf8) {
  TerminalManner manner;
  manner.is_terminal = manner.may_repaint = true;
  manner.has_utf8 = has_utf8;
  return manner;
}

std::string joined_frame(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

TopAction press(TopScreenState& screen, const TopFacts& facts, std::string_view bytes) {
  TopAction last;
  for (const TopKey& key : parse_top_keys(bytes)) last = screen.press(key, facts);
  return last;
}

TEST_CASE("a long line of a text goes on below, cut between characters") {
  TopScreenState screen;
  screen.show_text("log", {"ab日本語ü", "end"});
  const auto lines = top_frame(some_facts(), screen, plain_manner(true), {.columns = 5, .rows = 8});
  REQUIRE(lines.size() == 8);
  CHECK(lines[2] == "ab日");
  CHECK(lines[3] == "本語ü");
  CHECK(lines[4] == "end");
  const auto narrow =
      top_frame(some_facts(), screen, plain_manner(true), {.columns = 1, .rows = 8});
  CHECK(narrow[4] == "…");  // 日 is wider than the terminal
}

TEST_CASE("a frame has exactly the terminal's size, whatever there is to show") {
  for (const int machines : {0, 1, 2, 40}) {
    const TopFacts facts = some_facts(machines);
    for (const TopSize size : {TopSize{80, 24}, TopSize{20, 6}, TopSize{200, 60}, TopSize{1, 1}}) {
      for (const char* keys : {"", "2", "5\r", "?", "l", "2u"}) {
        TopScreenState screen;
        press(screen, facts, keys);
        const auto lines = top_frame(facts, screen, plain_manner(true), size);
        CHECK(lines.size() == size.rows);
        for (const std::string& line : lines) CHECK(columns_of(line) <= size.columns);
      }
    }
  }
}

TEST_CASE("links have the figures of the last second, of their own model and ranks") {
  TopFacts facts = some_facts();
  const JsonObject status = facts.cluster.status().get_object();
  const Json model = find(status, "models")->get_array().at(0);
  const std::string name(find(model, "name")->get_string());
  CHECK(facts.cluster
            .take({"meters",
                   dump_json(JsonObject{{"links", JsonArray{JsonObject{{"model", "another"},
                                                                       {"a", 0},
                                                                       {"b", 1},
                                                                       {"p50_us", 1},
                                                                       {"bytes_s", 7e9}},
                                                            JsonObject{{"model", name},
                                                                       {"a", 0},
                                                                       {"b", 1},
                                                                       {"p50_us", 44.5},
                                                                       {"bytes_s", 1.25e6}}}}})})
            .ok());
  const std::string frame =
      joined_frame(top_frame(facts, TopScreenState(), plain_manner(true), {80, 24}));
  CAPTURE(frame);
  CHECK(frame.find("44.5 us") != std::string::npos);
  CHECK(frame.find("30.0 us") == std::string::npos);
  CHECK(frame.find("9.4 Gbit/s") != std::string::npos);  // not among the meters: as it was
  CHECK(frame.find("1.25 MB/s") != std::string::npos);
  CHECK(frame.find("7.00 GB/s") == std::string::npos);
}

TEST_CASE("80 columns and 24 rows show all five panes") {
  const TopFacts facts = some_facts();
  const std::string frame =
      joined_frame(top_frame(facts, TopScreenState(), plain_manner(true), {80, 24}));
  for (const std::string part : {"2 machines, 40 W, 23.1 tok/s, 1 running", "1 machines",
                                 "2 models", "3 requests", "4 links", "5 events", "box1",
                                 "16/64 GB", "here", "laptop", "9.4 Gbit/s", "30.0 us", "q quit"}) {
    CAPTURE(part);
    CAPTURE(frame);
    CHECK(frame.find(part) != std::string::npos);
  }
  CHECK(frame.find('\x1b') == std::string::npos);
}

TEST_CASE("without UTF-8 a frame is ASCII") {
  const std::string frame =
      joined_frame(top_frame(some_facts(40), TopScreenState(), plain_manner(false), {60, 24}));
  for (const char c : frame) CHECK(static_cast<unsigned char>(c) < 0x80);
}

TEST_CASE("keys are told apart in what a terminal sends") {
  const auto keys = parse_top_keys("1\x1b[A\x1bOB\x1b[5~\r\x7f\x1b[15~q\x1b");
  REQUIRE(keys.size() == 8);
  CHECK(keys[1].kind == TopKey::Kind::kUp);
  CHECK(keys[2].kind == TopKey::Kind::kDown);
  CHECK(keys[3].kind == TopKey::Kind::kPageUp);
  CHECK(keys[4].kind == TopKey::Kind::kEnter);
  CHECK(keys[5].kind == TopKey::Kind::kBackspace);
  CHECK(keys[6].character == 'q');
  CHECK(keys[7].kind == TopKey::Kind::kEscape);
}

TEST_CASE("unloading asks first, and only y is a yes") {
  const TopFacts facts = some_facts();
  TopScreenState screen;
  CHECK(press(screen, facts, "u").kind == TopAction::Kind::kNothing);
  CHECK_FALSE(screen.told().empty());
  CHECK(press(screen, facts, "2u").kind == TopAction::Kind::kNothing);
  CHECK(screen.mode() == TopScreenState::Mode::kAskUnload);
  CHECK(press(screen, facts, "q").kind == TopAction::Kind::kNothing);
  const TopAction action = press(screen, facts, "uy");
  CHECK(action.kind == TopAction::Kind::kUnload);
  CHECK(action.model == "qwen3");
}

TEST_CASE("a model to load is typed, and Esc takes that back") {
  const TopFacts facts = some_facts();
  TopScreenState screen;
  const TopAction action = press(screen, facts, "lorg/x\x7fq\r");
  CHECK(action.kind == TopAction::Kind::kLoad);
  CHECK(action.model == "org/q");
  press(screen, facts, "labc");
  screen.press({TopKey::Kind::kEscape, 0}, facts);
  CHECK(press(screen, facts, "q").kind == TopAction::Kind::kQuit);
}

TEST_CASE("the chosen row stays in sight, and Enter tells all about it") {
  const TopFacts facts = some_facts(40);
  TopScreenState screen;
  for (int i = 0; i < 50; ++i) press(screen, facts, "j");
  CHECK(screen.selected() == 39);
  CHECK(joined_frame(top_frame(facts, screen, plain_manner(true), {80, 24})).find("> box39") !=
        std::string::npos);
  press(screen, facts, "\r");
  CHECK(joined_frame(top_frame(facts, screen, plain_manner(true), {80, 24})).find("id: 39") !=
        std::string::npos);
  press(screen, facts, "\x1b");
  press(screen, facts, "s");
  CHECK(top_rows(facts, TopPane::kMachines, screen.is_sorted(), {})[0].starts_with("box39"));
}

TEST_CASE("all about a model has a line for each of its links, without JSON") {
  const auto lines = top_detail(some_facts(), TopPane::kModels, 0, false);
  const auto is_link = [&](const std::string& line) {
    return line.starts_with("links 0: a 0, b 1");
  };
  REQUIRE(std::count_if(lines.begin(), lines.end(), is_link) == 1);
  for (const std::string& line : lines) CHECK(line.find('{') == std::string::npos);
}

TEST_CASE("rows are shared so that every pane shows something") {
  CHECK(share_rows({1, 1, 1, 1, 1}, 17, TopPane::kModels) == std::array<size_t, 5>{1, 1, 1, 1, 1});
  CHECK(share_rows({40, 40, 40, 40, 40}, 5, TopPane::kModels) ==
        std::array<size_t, 5>{1, 1, 1, 1, 1});
  const auto shares = share_rows({40, 40, 1, 1, 1}, 17, TopPane::kModels);
  CHECK(shares[1] > shares[0]);
  CHECK(shares[0] + shares[1] == 14);
  CHECK(share_rows({5, 5, 5, 5, 5}, 0, TopPane::kLinks) == std::array<size_t, 5>{});
}

TEST_CASE("a problem and a machine that asks to join are said on top") {
  TopFacts facts = some_facts();
  CHECK(facts.cluster
            .take({"change", R"({"pins":[{"name":"new","address":"10.0.0.9","pin":"12345678"}]})"})
            .ok());
  auto lines = top_frame(facts, TopScreenState(), plain_manner(true), {80, 24});
  CHECK(lines[1].find("12345678") != std::string::npos);
  facts.problem = "the node does not answer";
  lines = top_frame(facts, TopScreenState(), plain_manner(true), {80, 24});
  CHECK(lines[1] == "the node does not answer");
}

}  // namespace
}  // namespace lockstep
