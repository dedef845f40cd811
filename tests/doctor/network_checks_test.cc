// RDMA and the network: facts in, findings out; probes run on this machine.
#include "doctor/checks/network_checks.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>

#include "base/files/unique_fd.h"
#include "doctor/check_support.h"
#include "doctor/checks/network_trials.h"
#include "doctor/checks/rdma_checks.h"

using namespace lockstep;

namespace {

constexpr uint64_t kMib = uint64_t{1} << 20;

InterfaceFacts cable() {
  return {.name = "eth0",
          .is_up = true,
          .can_multicast = true,
          .speed_mbit_s = 10'000,
          .addresses = {"10.0.0.2"},
          .subnet_v4 = "10.0.0.0/24"};
}

InterfaceFacts loopback() {
  return {.name = "lo", .is_up = true, .is_loopback = true, .addresses = {"127.0.0.1"}};
}

NetworkFacts good_network() {
  return {.interfaces = {loopback(), cable()},
          .multicast = {.sent = 2, .heard_from = {"127.0.0.1", "10.0.0.2"}},
          .http_port = 8600,
          .congestion_control = "cubic",
          .receive_bytes_max = 6'291'456};
}

RdmaFacts good_rdma() {
  return {.verbs = {.library = "libibverbs.so.1",
                    .has_library = true,
                    .ports = {{"mlx5_0", 1, true, true, {"fe80::1", "10.0.0.2"}}}},
          .kernel_devices = {"mlx5_0"},
          .interfaces = {loopback(), cable()},
          .locked_bytes_max = 1024 * kMib};
}

}  // namespace

TEST_CASE("a network without faults is well") {
  check_all_well(judge_network(good_network()));
  check_all_well(judge_rdma(good_rdma()));
}

TEST_CASE("interfaces: none, slow, half duplex, wireless") {
  NetworkFacts facts = good_network();
  facts.interfaces = {loopback()};
  CHECK(severity_of(judge_network(facts), "interface") == Severity::kNote);
  facts.interfaces = {cable()};
  facts.interfaces[0].speed_mbit_s = 100;
  CHECK(severity_of(judge_network(facts), "interface") == Severity::kNote);
  facts.interfaces[0].is_half_duplex = true;
  CHECK(severity_of(judge_network(facts), "interface") == Severity::kProblem);
  facts.interfaces = {cable()};
  facts.interfaces[0].is_wireless = true;
  CHECK(severity_of(judge_network(facts), "interface") == Severity::kNote);
  facts.interfaces.push_back(cable());  // wireless next to a cable is fine
  CHECK(severity_of(judge_network(facts), "interface") == Severity::kOk);
}

TEST_CASE("multicast: deaf on the only interface is a problem, on one of two a note") {
  NetworkFacts facts = good_network();
  facts.multicast.heard_from = {"127.0.0.1"};
  const auto deaf = found(judge_network(facts), "multicast");
  CHECK(deaf->severity == Severity::kProblem);
  CHECK(deaf->sentence == "this machine does not hear its own multicast on eth0");
  facts.multicast.heard_from = {"10.0.1.2"};
  facts.interfaces.push_back(cable());
  facts.interfaces.back().name = "eth1";
  facts.interfaces.back().addresses = {"10.0.1.2"};
  CHECK(severity_of(judge_network(facts), "multicast") == Severity::kNote);
  facts.multicast.error = "this machine has no UDP";
  CHECK(severity_of(judge_network(facts), "multicast") == Severity::kProblem);
  facts = good_network();
  facts.interfaces[1].can_multicast = false;
  CHECK(severity_of(judge_network(facts), "multicast") == Severity::kNote);
}

TEST_CASE("ports: ports in use are problems unless a node runs here") {
  NetworkFacts facts = good_network();
  facts.taken = {.http = true, .control = true, .beacon = true};
  size_t problems = 0;
  for (const Finding& one : judge_network(facts)) {
    problems += one.severity == Severity::kProblem ? 1 : 0;
  }
  CHECK(problems == 3);
  facts.node_answers = true;
  CHECK(severity_of(judge_network(facts), "port") == Severity::kOk);
}

TEST_CASE("TCP: congestion control and buffers") {
  NetworkFacts facts = good_network();
  facts.congestion_control = "vegas";
  facts.receive_bytes_max = 200'000;
  CHECK(severity_of(judge_network(facts), "tcp") == Severity::kNote);
  CHECK(severity_of(judge_network(facts), "tcp_buffer") == Severity::kNote);
  facts.congestion_control = "";  // macOS does not report it
  CHECK_FALSE(found(judge_network(facts), "tcp").has_value());
}

TEST_CASE("RDMA: no card is well, a card without library, driver or device is a problem") {
  RdmaFacts facts{.verbs = {.library = "libibverbs.so.1", .problem = "it cannot be loaded"}};
  CHECK(severity_of(judge_rdma(facts), "rdma_library") == Severity::kOk);
  facts.kernel_devices = {"mlx5_0"};
  CHECK(severity_of(judge_rdma(facts), "rdma_library") == Severity::kProblem);
  facts.verbs = {.library = "libibverbs.so.1", .has_library = true};
  CHECK(severity_of(judge_rdma(facts), "rdma_device") == Severity::kProblem);
  facts.kernel_devices.clear();
  CHECK(severity_of(judge_rdma(facts), "rdma_device") == Severity::kOk);
  facts.has_card_without_driver = true;
  CHECK(found(judge_rdma(facts), "rdma_device")->mend == "sudo modprobe mlx5_ib");
  facts.verbs.problem = "the RDMA device mlx5_0 cannot be opened: Permission denied";
  CHECK(severity_of(judge_rdma(facts), "rdma_device") == Severity::kProblem);
}

TEST_CASE("RDMA on a Mac: a device that cannot be opened needs a restart") {
  RdmaFacts facts{.verbs = {.library = "librdma.dylib",
                            .has_library = true,
                            .problem = "the RDMA device rdma_en2: opening it failed: Cannot "
                                       "allocate memory"}};
  facts.is_apple = true;
  facts.apple_switch = "enabled";
  const auto finding = found(judge_rdma(facts), "rdma_device");
  REQUIRE(finding.has_value());
  CHECK(finding->severity == Severity::kProblem);
  CHECK(finding->mend.find("sudo shutdown -r now") == 0);
}

TEST_CASE("RDMA ports: one without a link is a note if another is active, an address is needed") {
  RdmaFacts facts = good_rdma();
  facts.verbs.ports.push_back({"mlx5_1", 1, false, true, {}});
  CHECK(severity_of(judge_rdma(facts), "rdma_port") == Severity::kNote);
  facts.verbs.ports.erase(facts.verbs.ports.begin());
  CHECK(severity_of(judge_rdma(facts), "rdma_port") == Severity::kProblem);
  facts = good_rdma();
  facts.verbs.ports[0].addresses = {"fe80::1"};
  CHECK(severity_of(judge_rdma(facts), "rdma_gid") == Severity::kProblem);
  facts.verbs.ports[0].is_ethernet = false;
  CHECK(severity_of(judge_rdma(facts), "rdma_gid") == Severity::kNote);
}

TEST_CASE("RDMA: a low limit of locked memory is a problem, but not for root") {
  RdmaFacts facts = good_rdma();
  facts.locked_bytes_max = 8 * kMib;
  CHECK(severity_of(judge_rdma(facts), "memlock") == Severity::kProblem);
  facts.is_root = true;
  CHECK(severity_of(judge_rdma(facts), "memlock") == Severity::kOk);
  facts.verbs.ports.clear();  // not needed then
  CHECK_FALSE(found(judge_rdma(facts), "memlock").has_value());
}

TEST_CASE("RDMA over Thunderbolt: the switch and the bridge") {
  RdmaFacts facts = good_rdma();
  facts.is_apple = true;
  CHECK(severity_of(judge_rdma(facts), "rdma_switch") == Severity::kOk);
  facts.apple_switch = "disabled\n";
  CHECK(severity_of(judge_rdma(facts), "rdma_switch") == Severity::kProblem);
  facts.apple_switch = "enabled\n";
  facts.bridge_members = {"en2", "en3"};
  CHECK(severity_of(judge_rdma(facts), "rdma_switch") == Severity::kOk);
  CHECK(severity_of(judge_rdma(facts), "thunderbolt_bridge") == Severity::kNote);
}

TEST_CASE("a port that another program listens on is in use, and free afterwards") {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  socklen_t length = sizeof(address);
  UniqueFd listener(::socket(AF_INET, SOCK_STREAM, 0));
  REQUIRE(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), length) == 0);
  REQUIRE(::listen(listener.get(), 1) == 0);
  REQUIRE(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &length) == 0);
  const uint16_t port = ntohs(address.sin_port);
  CHECK(try_ports(port).http);
  listener.reset();
  CHECK_FALSE(try_ports(port).http);
}

TEST_CASE("a multicast test ends in time, and any answer comes from this machine") {
  const auto start = std::chrono::steady_clock::now();
  const MulticastTest test = try_multicast();
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(20));
  std::vector<std::string> own;
  for (const InterfaceFacts& one : collect_interfaces(SystemFiles())) {
    own.insert(own.end(), one.addresses.begin(), one.addresses.end());
  }
  for (const std::string& host : test.heard_from) {
    CHECK_MESSAGE(std::count(own.begin(), own.end(), host) >= 1, host);
  }
}
