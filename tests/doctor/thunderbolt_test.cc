// Thunderbolt ports and cables, from outputs of three Macs (tests/data/mac_tools/README.md).
#include "doctor/mac/thunderbolt.h"

#include "base/files/mapped_file.h"
#include "doctor/check_support.h"
#include "doctor/checks/thunderbolt_checks.h"
#include "doctor/doctor.h"

using namespace lockstep;

namespace {

std::string mac_output_path(const std::string& name) {
  return LOCKSTEP_SOURCE_DIR "/tests/data/mac_tools/" + name + ".json";
}

std::string mac_output(const std::string& name) {
  auto text = read_small_file(mac_output_path(name));
  REQUIRE(text.ok());
  return std::move(text.value());
}

std::vector<ThunderboltPort> ports_of_mac(const std::string& name) {
  auto ports = parse_thunderbolt(mac_output(name));
  REQUIRE(ports.ok());
  return std::move(ports.value());
}

MacAnswers studio_answers() {
  MacAnswers answers;
  answers.thunderbolt = mac_output("studio");
  for (int port = 1; port <= 6; ++port) {
    answers.hardware_ports += "Hardware Port: Thunderbolt " + std::to_string(port) +
                              "\nDevice: en" + std::to_string(port + 1) + "\n\n";
  }
  return answers;
}

// A finding of `check` whose sentence has `text` in it.
const Finding* finding_with(const Findings& findings, const std::string& text) {
  for (const Finding& one : findings) {
    if (one.sentence.find(text) != std::string::npos) return &one;
  }
  return nullptr;
}

}  // namespace

TEST_CASE("the ports of a Mac have their speeds and what they lead to") {
  const auto ports = ports_of_mac("studio");
  REQUIRE(ports.size() == 6);
  for (int i = 0; i < 6; ++i) CHECK(ports[static_cast<size_t>(i)].receptacle == i + 1);
  CHECK(ports[1].machine == "Mac Studio");
  CHECK(ports[1].gbit_s == 80);
  CHECK(ports[1].device == "MacBook Pro");
  CHECK(ports[1].peer_domain == "BBBBBBBB-0000-4000-8000-000000000001");
  CHECK(ports[1].peer_offers_rdma);
  CHECK(ports[2].gbit_s == 40);
  CHECK_FALSE(ports[2].peer_offers_rdma);
  CHECK(ports[3].device == "Envoy Ultra");  // a drive is no Mac
  CHECK(ports[3].peer_domain.empty());
  CHECK(ports[4].device.empty());
  CHECK(ports[4].gbit_s == 0);
  CHECK(ports[4].gbit_s_max == 120);
}

TEST_CASE("a Mac at the end of a row of docks is found, and a deep tree ends") {
  const std::string dock = R"({"_name":"dock","_items":[)";
  const auto output = [&](int docks, const std::string& end) {
    std::string text = R"({"SPThunderboltDataType":[{"receptacle_1_tag":{"receptacle_id_key":"1",)"
                       R"("receptacle_status_key":"receptacle_connected"},"_items":[)";
    for (int i = 0; i < docks; ++i) text += dock;
    text += end;
    for (int i = 0; i < docks; ++i) text += "]}";
    return text + "]}]}";
  };
  const std::string mac = R"({"_name":"Mac mini","domain_uuid_key":"X"})";
  const auto found = parse_thunderbolt(output(2, mac));
  REQUIRE(found.ok());
  CHECK(found.value()[0].peer_domain == "X");
  CHECK(found.value()[0].device == "Mac mini");
  const auto deep = parse_thunderbolt(output(20, mac));
  REQUIRE(deep.ok());
  CHECK(deep.value()[0].peer_domain.empty());
}

TEST_CASE("a text of another form is refused, one with other values is read as far as it goes") {
  CHECK_FALSE(parse_thunderbolt("").ok());
  CHECK_FALSE(parse_thunderbolt("Thunderbolt/USB4:\n").ok());
  const auto refused = parse_thunderbolt("{}");
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == ErrorCode::kCorrupt);
  CHECK(parse_thunderbolt(R"({"SPThunderboltDataType":[1,null,{},{"receptacle_1_tag":7}]})").ok());
  std::string many = R"({"SPThunderboltDataType":[)";
  for (size_t i = 0; i < 2 * kThunderboltPortsMax; ++i) many += R"({"receptacle_1_tag":{}},)";
  const auto cut = parse_thunderbolt(many + "{}]}");
  REQUIRE(cut.ok());
  CHECK(cut.value().size() == kThunderboltPortsMax);
}

TEST_CASE("the outputs of several Macs give each cable once") {
  const auto cables = thunderbolt_cables({{"studio", ports_of_mac("studio")},
                                          {"macbook", ports_of_mac("macbook")},
                                          {"mini", ports_of_mac("mini")}});
  REQUIRE(cables.size() == 2);  // the other Mac Studio's output is missing
  CHECK(cables[0].a == "studio");
  CHECK(cables[0].port_a == 2);
  CHECK(cables[0].b == "macbook");
  CHECK(cables[0].port_b == 1);
  CHECK(cables[0].gbit_s == 80);
  CHECK(cables[1].b == "mini");
  CHECK(cables[1].port_a == 3);
  CHECK(cables[0].is_seen_by_both);
  CHECK(cables[1].is_seen_by_both);
}

TEST_CASE("a cable that only one end sees is reported, whichever end it is") {
  auto blind = ports_of_mac("macbook");
  for (ThunderboltPort& port : blind) port.peer_domain.clear();
  for (const bool is_first : {false, true}) {
    const MacPorts studio{"studio", ports_of_mac("studio")}, macbook{"macbook", blind};
    const auto cables =
        thunderbolt_cables(is_first ? std::vector{macbook, studio} : std::vector{studio, macbook});
    REQUIRE(cables.size() == 1);
    CHECK_FALSE(cables[0].is_seen_by_both);
    CHECK((is_first ? cables[0].port_b : cables[0].port_a) == 2);
    CHECK(severity_of(judge_cables({studio, macbook}), "cable") == Severity::kProblem);
  }
}

TEST_CASE("the doctor names each port of a Mac Studio, and the one without RDMA") {
  const Findings findings = judge_thunderbolt(thunderbolt_facts(studio_answers()));
  check_sentences(findings);
  const auto port = found(findings, "thunderbolt_port");  // port 1 is en2
  REQUIRE(port.has_value());
  CHECK(port->severity == Severity::kProblem);
  CHECK(port->sentence.find("Thunderbolt port 1 (en2)") == 0);
  const Finding* const fast = finding_with(findings, "port 2 (en3) leads to MacBook Pro");
  REQUIRE(fast != nullptr);
  CHECK(fast->severity == Severity::kOk);
  const Finding* const slow = finding_with(findings, "port 3 (en4) leads to Mac mini");
  REQUIRE(slow != nullptr);
  CHECK(slow->severity == Severity::kNote);
  CHECK(finding_with(findings, "port 4 (en5) holds Envoy Ultra") != nullptr);
  CHECK(finding_with(findings, "2 Thunderbolt ports are free (up to 120 Gbit/s)") != nullptr);
  CHECK(severity_of(judge_thunderbolt(thunderbolt_facts({})), "thunderbolt") == Severity::kNote);
}

TEST_CASE("the cables between Macs are judged from a file of each") {
  const auto examined = examine_cables(
      {mac_output_path("studio"), mac_output_path("macbook"), mac_output_path("mini")});
  REQUIRE(examined.ok());
  check_sentences(examined.value());
  const Finding* const fast = finding_with(examined.value(), "studio port 2 and macbook port 1");
  REQUIRE(fast != nullptr);
  CHECK(fast->severity == Severity::kOk);
  const Finding* const slow = finding_with(examined.value(), "studio port 3 and mini port 1");
  REQUIRE(slow != nullptr);
  CHECK(slow->severity == Severity::kNote);
  const Finding* const none = finding_with(examined.value(), "no cable joins macbook and mini");
  REQUIRE(none != nullptr);
  CHECK(none->severity == Severity::kNote);
  CHECK_FALSE(examine_cables({mac_output_path("none")}).ok());
  CHECK_FALSE(examine_cables({LOCKSTEP_SOURCE_DIR "/tests/data/mac_tools/README.md"}).ok());
}
