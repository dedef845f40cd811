#include "access/host_names.h"

#include <doctest/doctest.h>

namespace lockstep {

using Names = std::vector<std::string>;

TEST_CASE("a loopback authority is localhost or an address of this machine's own loopback") {
  for (const char* own : {"localhost", "LOCALHOST:8600", "localhost.", "127.0.0.1", "127.3.2.1:1",
                          "[::1]", "[::1]:8600", "[0:0:0:0:0:0:0:1]"}) {
    CHECK_MESSAGE(is_loopback_authority(own), own);
  }
  for (const char* other :
       {"", "a", "127.evil.example", "localhost.evil.example", "127.0.0.1.evil.example",
        "127.0.0.1@evil.example", "localhost:evil", "[::1", "[::1]x", "[localhost]", "::1",
        "0.0.0.0", "[::]", "127.1", "0x7f.0.0.1", "10.0.0.1", "[127.0.0.1]", "127.0.0.1:123456"}) {
    CHECK_MESSAGE(!is_loopback_authority(other), other);
  }
}

TEST_CASE("an address to listen on that nobody can open is told from the others") {
  for (const char* every : {"*", "0.0.0.0", "::"}) {
    CHECK_MESSAGE(is_every_address(every), every);
    CHECK(host_to_open(every) == "localhost");
  }
  for (const char* one : {"", "localhost", "0.0.0.1", "::1", "**"}) {
    CHECK_MESSAGE(!is_every_address(one), one);
    CHECK(host_to_open(one) == one);
  }
}

TEST_CASE("an address and a name of the local network cannot be names of somebody else") {
  for (const char* own : {"10.0.0.5", "10.0.0.5:8600", "[fe80::1%eth0]:8600", "[2001:db8::1]",
                          "localhost:8600", "gpu1.local", "GPU1.LOCAL:80", "127.0.0.1"}) {
    CHECK_MESSAGE(is_address_authority(own), own);
  }
  for (const char* other : {"", "evil", "evil.example", "10.0.0.5.evil.example", ".local",
                            "gpu1.local.evil.example", "10.0.0.5evil", "[evil]", "2130706433"}) {
    CHECK_MESSAGE(!is_address_authority(other), other);
  }
}

TEST_CASE("whole names are compared, ignoring case, with or without a port") {
  const Names names{"gpu1", "llm.example.org"};
  for (const char* own : {"gpu1", "GPU1:8600", "llm.example.org", "LLM.example.org.:443"}) {
    CHECK_MESSAGE(is_named_authority(own, names), own);
  }
  for (const char* other : {"", "gpu11", "gpu1.evil.example", "example.org", "[gpu1]", "gpu1:x"}) {
    CHECK_MESSAGE(!is_named_authority(other, names), other);
  }
}

TEST_CASE("a machine's names are its own, with .local and with its domains") {
  CHECK(host_names_of("Gpu1", "") == Names{"gpu1", "gpu1.local"});
  CHECK(host_names_of("gpu1.lab.example", "") == Names{"gpu1", "gpu1.lab.example", "gpu1.local"});
  CHECK(
      host_names_of("gpu1", "# search no.example\nsearch lab.example Home.arpa.\nnameserver ::1") ==
      Names{"gpu1", "gpu1.home.arpa", "gpu1.lab.example", "gpu1.local"});
  CHECK(host_names_of("gpu1", "domain lab.example") ==
        Names{"gpu1", "gpu1.lab.example", "gpu1.local"});
  CHECK(host_names_of("", "search lab.example").empty());
  CHECK(host_names_of("a b", "").empty());
  CHECK(!own_host_names().empty());
}

TEST_CASE("a given name must be a plain host name") {
  CHECK(parse_host_name("LLM.example.org").value() == "llm.example.org");
  for (const char* text : {"", "https://llm.example", "llm.example:443", "*", "*.example", "a b"}) {
    CHECK_MESSAGE(!parse_host_name(text).ok(), text);
  }
}

}  // namespace lockstep
