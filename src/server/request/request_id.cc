#include "server/request/request_id.h"

#include <algorithm>

#include "server/request/random_id.h"

namespace lockstep {
namespace {

constexpr std::string_view kHeader = "x-request-id";

bool is_good(std::string_view id) {
  return !id.empty() && id.size() <= kRequestIdBytesMax &&
         std::all_of(id.begin(), id.end(), [](char c) { return c > ' ' && c <= '~'; });
}

}  // namespace

void give_request_id(HttpRequest& request) {
  if (is_good(request.header(kHeader))) return;
  std::erase_if(request.headers, [](const auto& header) { return header.first == kHeader; });
  request.headers.emplace_back(kHeader, random_id("req_"));
}

std::string_view request_id(const HttpRequest& request) {
  return request.header(kHeader);
}

HttpReply::Terms with_request_id(HttpReply::Terms terms, const HttpRequest& request) {
  for (const char* name : {"x-request-id", "request-id"}) {
    terms.headers.emplace_back(name, request_id(request));
  }
  return terms;
}

}  // namespace lockstep
