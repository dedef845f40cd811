// The cluster as reported by GET /cluster/status, and how findings are shown.
#include "doctor/checks/cluster_checks.h"

#include "base/version.h"
#include "doctor/check_support.h"
#include "doctor/doctor.h"

using namespace lockstep;

namespace {

ReportedCluster good_cluster() {
  const ClusterModelFacts model{.name = "m",
                                .state = "ready",
                                .machines = {"anna", "bert", "carl"},
                                .links = {{"anna", "bert", "tcp", "", 30, 10},
                                          {"anna", "carl", "tcp", "", 31, 10},
                                          {"bert", "carl", "tcp", "", 32, 9}}};
  return {.answers = true,
          .version = kVersion,
          .nodes = {{"anna", kVersion, "alive", "", true},
                    {"bert", kVersion, "alive"},
                    {"carl", kVersion, "alive"}},
          .models = {model}};
}

Json parsed(const char* text) {
  auto json = parse_json(text);
  REQUIRE_MESSAGE(json.ok(), json.error().message);
  return std::move(json.value());
}

}  // namespace

TEST_CASE("a whole cluster is well, and without a node there is nothing to say") {
  check_all_well(judge_cluster(good_cluster()));
  CHECK(judge_cluster({}).empty());
}

TEST_CASE("nodes: lost, absent, of another version, with a wrong clock") {
  ReportedCluster facts = good_cluster();
  facts.nodes[1].state = "dead";
  CHECK(severity_of(judge_cluster(facts), "node") == Severity::kProblem);
  facts.nodes[1].state = "absent";
  CHECK(severity_of(judge_cluster(facts), "node") == Severity::kNote);
  facts.nodes[2].version = "9.9.9";
  facts.nodes[2].clock_skew_s = -42;
  const Findings findings = judge_cluster(facts);
  CHECK(severity_of(findings, "version") == Severity::kProblem);
  CHECK(found(findings, "clock_skew")->sentence ==
        "the clock of carl is 42 s behind this machine's");
  facts.beacon_problem = "UDP port 8602 cannot be used";
  CHECK(severity_of(judge_cluster(facts), "beacon") == Severity::kProblem);
  facts.version = "0.0.1";  // of the running node; this program is newer
  CHECK(found(judge_cluster(facts), "version").has_value());
}

TEST_CASE("links: missing ones are counted, slow and late ones named") {
  ReportedCluster facts = good_cluster();
  facts.models[0].links.pop_back();
  const auto mesh = found(judge_cluster(facts), "mesh");
  CHECK(mesh->severity == Severity::kNote);
  CHECK(mesh->sentence == "m has no direct link for bert - carl; sums go by relays there");
  CHECK(mesh->mend == "for a mesh of 3 machines join 1 more pair with a cable");

  facts = good_cluster();
  facts.models[0].links[2].gbit_s = 0.9;
  CHECK(found(judge_cluster(facts), "slow_link")->sentence ==
        "the link bert - carl (tcp) has 0.9 Gbit/s, the fastest has 10");
  facts.models[0].links[2] = {"bert", "carl", "tcp", "the cable is out", 500, 10};
  CHECK(severity_of(judge_cluster(facts), "slow_link") == Severity::kNote);
  CHECK(severity_of(judge_cluster(facts), "no_rdma") == Severity::kNote);
  facts.models[0].state = "failed";
  CHECK(severity_of(judge_cluster(facts), "model") == Severity::kProblem);
}

TEST_CASE("links: TCP where this machine could use RDMA is a note that names the flag") {
  ReportedCluster facts = good_cluster();
  facts.own_rdma_device = "mlx5_0";
  const auto note = found(judge_cluster(facts), "no_rdma");
  REQUIRE(note.has_value());
  CHECK(note->severity == Severity::kNote);
  CHECK(note->sentence ==
        "m joins anna and bert by TCP, because RDMA was not asked for; mlx5_0 is active here");
  CHECK(note->mend.find("--link verbs") != std::string::npos);
  for (ClusterLinkFacts& link : facts.models[0].links) link.path = "verbs-rc";
  CHECK(!found(judge_cluster(facts), "no_rdma").has_value());
}

TEST_CASE("links: the addresses of each are named, and those outside the data networks") {
  ReportedCluster facts = good_cluster();
  CHECK(!found(judge_cluster(facts), "link_address").has_value());
  auto& links = facts.models[0].links;
  links[0].a_host = "10.86.12.1", links[0].b_host = "10.86.12.2", links[0].device = "rdma_en5";
  links[1].a_host = "10.0.0.1", links[1].b_host = "10.0.0.3", links[1].network_note = "join them";
  const Findings findings = judge_cluster(facts);
  CHECK(found(findings, "link_address")->sentence ==
        "the links of m: anna 10.86.12.1 (rdma_en5) - bert 10.86.12.2, anna 10.0.0.1 - carl "
        "10.0.0.3");
  CHECK(severity_of(findings, "link_address") == Severity::kOk);
  CHECK(found(findings, "data_network")->sentence ==
        "the link anna - carl (tcp) is in no data network: join them");
  CHECK(severity_of(findings, "data_network") == Severity::kNote);
  links.assign(8, {"anna", "bert", "tcp", "", 30, 10, "10.9.0.1", "10.9.0.2"});
  CHECK(found(judge_cluster(facts), "link_address")->sentence.ends_with(" and 2 more"));
}

TEST_CASE("facts are read from a node's answer, with machines in place of ranks") {
  const ReportedCluster facts = reported_cluster(parsed(R"({
    "version": "1.2", "cluster": "12345678", "nodes": [
      {"id": "aa", "name": "anna", "version": "1.2", "state": "alive", "is_self": true},
      {"id": "bb", "name": "bert", "version": "1.2", "state": "dead", "clock_skew_s": 7.5}],
    "models": [{"name": "m", "state": "ready",
      "ranks": [{"rank": 0}, {"rank": 1}, {"rank": 2}],
      "placement": [{"rank": 0, "node": "aa", "node_name": "anna"},
                    {"rank": 1, "node": "aa", "node_name": "anna"},
                    {"rank": 2, "node": "bb", "node_name": "bert"}],
      "links": [{"a": 0, "b": 1, "path": "shm", "gbit_s": 90},
                {"a": 1, "b": 2, "path": "tcp", "gbit_s": 9, "p50_us": 31, "reason": "no card",
                 "a_host": "10.9.0.1", "b_host": "10.9.0.2", "device": "rdma_en5",
                 "network_note": "join them"}]}]
  })"));
  CHECK(facts.answers);
  REQUIRE(facts.nodes.size() == 2);
  CHECK(facts.nodes[0].is_self);
  CHECK(facts.nodes[1].clock_skew_s == 7.5);
  REQUIRE(facts.models.size() == 1);
  CHECK(facts.models[0].machines == std::vector<std::string>{"anna", "bert"});
  REQUIRE(facts.models[0].links.size() == 1);
  CHECK(facts.models[0].links[0].a == "anna");
  CHECK(facts.models[0].links[0].b == "bert");
  CHECK(facts.models[0].links[0].reason == "no card");
  CHECK(facts.models[0].links[0].a_host == "10.9.0.1");
  CHECK(facts.models[0].links[0].b_host == "10.9.0.2");
  CHECK(facts.models[0].links[0].device == "rdma_en5");
  CHECK(facts.models[0].links[0].network_note == "join them");
}

TEST_CASE("a node that serves alone is no cluster of one") {
  const ReportedCluster facts =
      reported_cluster(parsed(R"({"version": "1.2", "nodes": [{"id": "00", "state": "alive"}]})"));
  CHECK(facts.answers);
  CHECK(facts.nodes.empty());
}

TEST_CASE("a node's answer is used as far as it is valid") {
  for (const char* text :
       {"{}", "[]", "3", R"({"nodes": 3, "models": {"a": 1}})", R"({"nodes": [1, null, []]})",
        R"({"models": [{"ranks": [{"rank": "x"}, 7], "placement": [1],)"
        R"("links": [{"a": -1, "b": 99}]}, null]})"}) {
    check_sentences(judge_cluster(reported_cluster(parsed(text))));
  }
}

TEST_CASE("findings as text and as JSON") {
  const Findings findings{{"a", Severity::kOk, "well", ""},
                          {"b", Severity::kNote, "odd", "do this"},
                          {"c", Severity::kProblem, "bad", ""}};
  CHECK(findings_text(findings, Signs::kWords) ==
        "ok       well\nnote     odd\n         do this\nPROBLEM  bad\n1 problem, 1 note\n");
  CHECK(findings_text(findings, Signs::kSymbols) ==
        "\u2713  well\n!  odd\n   do this\n\u2717  bad\n1 problem, 1 note\n");
  CHECK(dump_json(findings_json({findings.back()})) ==
        R"({"findings":[{"check":"c","severity":"problem","sentence":"bad","mend":""}],)"
        R"("problems":1})");
  CHECK(findings_text({}, Signs::kWords) == "no problems, no notes\n");
}
