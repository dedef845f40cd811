#include "cli/client/served_model.h"

#include <doctest/doctest.h>

#include "cli/client/node_client.h"
#include "cli/stream/cluster_state.h"
#include "cli/talk/model_picker.h"

namespace lockstep {
namespace {

Json served_status() {
  return parse_json(R"({"cluster":"12345678","models":[
      {"name":"Qwen3-0.6B","phase":"ready","state":"ready","wanted":{"path":"Qwen/Qwen3-0.6B",
       "aliases":["small"],"idle_unload_s":0}},
      {"name":"tiny","phase":"waiting","state":"loading","sentence":"no memory\n",
       "wanted":{"path":"/models/tiny","idle_unload_s":60}}]})")
      .value();
}

std::string found_name(std::string_view text, std::string_view path) {
  const Json status = served_status();
  const Json* model = find_served_model(status, text, path);
  return model == nullptr ? "" : text_in(*model, "name");
}

TEST_CASE("a model is found by name, alias, last part or path") {
  CHECK(found_name("Qwen3-0.6B", "") == "Qwen3-0.6B");
  CHECK(found_name("qwen3-0.6b", "") == "Qwen3-0.6B");
  CHECK(found_name("Qwen/Qwen3-0.6B", "") == "Qwen3-0.6B");
  CHECK(found_name("small", "") == "Qwen3-0.6B");
  CHECK(found_name("models/tiny", "/models/tiny") == "tiny");
  CHECK(found_name("other/tiny", "/elsewhere/tiny").empty());  // another folder of that name
  CHECK(found_name("huge", "").empty());
}

TEST_CASE("the progress of a model is bytes, rate and time, or why it waits") {
  const Json status = served_status();
  CHECK(model_progress(list_in(status, "models")[1]) == "waiting: no memory ");
  CHECK(is_model_on_demand(list_in(status, "models")[1]));
  CHECK_FALSE(is_model_ready(list_in(status, "models")[1]));
  const Json loading = parse_json(R"({"loading":{"read_bytes":12500000,"whole_bytes":93400000,
      "bytes_s":6200000,"seconds_left":13.05}})")
                           .value();
  CHECK(model_progress(loading) == "12.50 MB of 93.40 MB, 6.20 MB/s, 0:14 left");
  CHECK(loading_text(parse_json(R"({"phase":"ready","loading":null})").value()).empty());
}

TEST_CASE("the state of a cluster follows its events") {
  ClusterState state;
  const auto take = [&](const char* name, const char* data) { return state.take({name, data}); };
  REQUIRE(take("snapshot", R"({"version":"1","pins":[],"happened":[{"kind":"load"}]})").ok());
  CHECK(state.has_status());
  CHECK(state.happened().size() == 1);
  REQUIRE(take("change", R"({"version":"2","pins":null})").ok());
  CHECK(dump_json(*find(state.status(), "version")) == "\"2\"");
  CHECK(find(state.status(), "pins") == nullptr);
  CHECK(take("meters", R"({"now_ms":5})").value() == ClusterState::Change::kMeters);
  CHECK(take("later", "{}").value() == ClusterState::Change::kNothing);
  CHECK_FALSE(take("change", "[]").ok());
  for (size_t i = 0; i < ClusterState::kHappeningsMax + 3; ++i) {
    REQUIRE(take("happened", R"({"kind":"ready"})").ok());
  }
  CHECK(state.happened().size() == ClusterState::kHappeningsMax);
}

TEST_CASE("a list to pick from has served models and whole ones on disks") {
  const Json disk = parse_json(R"({"nodes":[{"models":[
      {"name":"org/big","complete":true,"bytes":4200000000},
      {"name":"org/half","complete":false,"bytes":1},{"name":"local/x","complete":true}]}]})")
                        .value();
  const auto models = pickable_models(served_status(), disk);
  REQUIRE(models.size() == 3);
  CHECK(picker_lines(models)[2] == "  3  org/big     4.20 GB on disk, not loaded");
  CHECK(picked_model(models, "2")->name == "tiny");
  CHECK(picked_model(models, "org")->name == "org/big");
  CHECK(picked_model(models, "0") == nullptr);
  CHECK(picked_model(models, "4") == nullptr);
  CHECK(picked_model(models, "") == nullptr);
  CHECK(picked_model(models, "x") == nullptr);
}

}  // namespace
}  // namespace lockstep
