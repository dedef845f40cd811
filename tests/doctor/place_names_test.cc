// Names and addresses of machines in reports that go to strangers.
#include "doctor/report/place_names.h"

#include <doctest/doctest.h>

#include "doctor/report/redaction.h"

using namespace lockstep;

namespace {

std::string hidden(const std::string& text) {
  PlaceNames names;
  names.add_host("Annas-Mac-Studio.fritz.box");
  return names.hidden(text);
}

}  // namespace

TEST_CASE("addresses are hidden wherever they stand, with or without a port, and loopback stays") {
  CHECK(hidden("10.0.0.2:8601") == "[address]:8601");
  CHECK(hidden("rank 3: 192.168.178.21, then 10.0.0.2.") == "rank 3: [address], then [address].");
  CHECK(hidden("http://10.1.2.3:8600/v1") == "http://[address]:8600/v1");
  CHECK(hidden("inet6 fe80::aede:48ff:fe00:1122%en5 prefixlen 64") ==
        "inet6 [address] prefixlen 64");
  CHECK(hidden("[fe80::1%en0]:8601") == "[[address]]:8601");
  CHECK(hidden("::ffff:10.0.0.7") == "[address]");
  CHECK(hidden("ether a0:ce:c8:12:34:56") == "ether [address]");
  CHECK(hidden("127.0.0.1:8600 ::1 0.0.0.0 localhost") == "127.0.0.1:8600 ::1 0.0.0.0 localhost");
}

TEST_CASE("ids of hardware are hidden, and the numbers of devices stay") {
  CHECK(hidden("Domain UUID: 7F158861-C131-4D0D-83B6-CA50EF76C32B") == "Domain UUID: [id]");
  CHECK(hidden("UID: 0x05AC897E0A474D02") == "UID: [id]");
  CHECK(hidden("Vendor ID: 0x0A27, flags=8963") == "Vendor ID: 0x0A27, flags=8963");
}

TEST_CASE("names of machines are hidden whole, in any case, with and without their domain") {
  CHECK(hidden("annas-mac-studio is absent") == "[host] is absent");
  CHECK(hidden("Annas-Mac-Studio.fritz.box:8601") == "[host]:8601");
  CHECK(hidden("join studio-2.local.") == "join [host].");
  CHECK(hidden("{\"name\":\"ANNAS-MAC-STUDIO\"}") == "{\"name\":\"[host]\"}");
  CHECK(hidden("annas-mac-studios") == "annas-mac-studios");
  PlaceNames names;
  names.add_host("m1");
  names.add_host("localhost");
  CHECK(names.hidden("m1 localhost") == "m1 localhost");
}

TEST_CASE("ordinary text stays as it is") {
  for (const char* plain :
       {"", "version 26.2, build 25C56", "lockstep 0.1.0", "at 12:34:56", "std::vector<int>::at",
        "kernels: avx2", "rdma_en2 port 1 is active", "6.1.0-56-amd64", "a:b:c", "::", "%d %",
        "p50 3.25 us; p99 7 us", "~/models/m.gguf", "0x1f"}) {
    CHECK(hidden(plain) == plain);
  }
}

TEST_CASE("a long text takes time in proportion to its length") {
  const std::string colons(1'000'000, ':'), letters(1'000'000, 'a');
  CHECK(hidden(colons) == colons);
  CHECK(hidden(letters) == letters);
}

TEST_CASE("a redaction hides places once it is told to, in keys and values of JSON too") {
  Redaction redaction;
  CHECK(redaction.text("at 10.0.0.2") == "at 10.0.0.2");
  PlaceNames names;
  names.add_host("alpha");
  redaction.hide_places(names);
  CHECK(redaction.text("alpha at 10.0.0.2") == "[host] at [address]");
  const auto json = parse_json(R"({"alpha":["10.0.0.2",5],"name":"Alpha"})");
  REQUIRE(json.ok());
  CHECK(dump_json(redaction.json(json.value())) == R"({"[host]":["[address]",5],"name":"[host]"})");
}
