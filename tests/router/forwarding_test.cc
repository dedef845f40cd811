#include "router/forwarding.h"

#include <doctest/doctest.h>

namespace lockstep {

TEST_CASE("hop-by-hop headers are not forwarded") {
  HttpRequest request;
  request.headers = {{"host", "a"},
                     {"content-length", "3"},
                     {"connection", "close"},
                     {"authorization", "B c"},
                     {"transfer-encoding", "x"},
                     {"x-a", "1\t2"}};
  CHECK(forwarded_request_headers(request) ==
        HeaderList{{"authorization", "B c"}, {"x-a", "1 2"}, {"Via", "1.1 lockstep-router"}});
  CHECK(forwarded_answer_headers(
            {{"content-type", "a"}, {"date", "b"}, {"keep-alive", "c"}, {"retry-after", "1"}}) ==
        HeaderList{{"retry-after", "1"}});
}

TEST_CASE("a target is forwarded with its original encoding") {
  HttpRequest request;
  request.path = "/v1/models/a b/\xc3\xa9%\r\n?";
  CHECK(forwarded_target(request) == "/v1/models/a%20b/%C3%A9%25%0D%0A%3F");
  request.path = "/v1/x";
  request.query = "a=%20";
  CHECK(forwarded_target(request) == "/v1/x?a=%20");
}

TEST_CASE("the address of a backend has a host, an optional port, and no path") {
  const auto url = [](std::string_view text) {
    const auto parsed = parse_backend_url(text);
    return parsed.ok() ? parsed.value().text() : "error: " + parsed.error().message;
  };
  CHECK(url("http://10.0.0.2:8601") == "10.0.0.2:8601");
  CHECK(url("http://10.0.0.2:8601/") == "10.0.0.2:8601");
  CHECK(url("studio.local") == "studio.local:8600");
  CHECK(url("http://[fe80::1]:9") == "[fe80::1]:9");
  for (const char* wrong : {"https://a:1", "http://a:1/v1", "", "http://", "a:x", "a:99999"}) {
    CAPTURE(wrong);
    CHECK(url(wrong).starts_with("error: "));
  }
}

}  // namespace lockstep
