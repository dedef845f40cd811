#include "server/browser/page_routes.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/letters.h"
#include "server/generation/api_context.h"
#include "server/page/plain_page.h"
#include "server/request/errors.h"

namespace lockstep {
namespace {

// Svelte makes its templates by a Trusted Types policy of this name.
constexpr const char* kContentPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types svelte-trusted-html";
constexpr const char* kPageCaching = "no-cache";
constexpr const char* kAssetCaching = "public, max-age=31536000, immutable";

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Takes the next element of a list with commas, without spaces around it.
std::string_view take_element(std::string_view& list) {
  const std::string_view element = list.substr(0, list.find(','));
  list.remove_prefix(std::min(list.size(), element.size() + 1));
  return trimmed(element);
}

// Whether the parameters of a coding are "q=0", "q=0.0" and so on, which refuse it.
bool is_refused(std::string_view parameters) {
  parameters = trimmed(parameters);
  if (parameters.size() < 3 || (parameters[0] != 'q' && parameters[0] != 'Q')) return false;
  return parameters[1] == '=' &&
         parameters.substr(2).find_first_not_of("0.") == std::string_view::npos;
}

const PageFile* find_file(PageFiles files, std::string_view path) {
  const auto found = std::find_if(files.begin(), files.end(),
                                  [&](const PageFile& file) { return file.path == path; });
  return found == files.end() ? nullptr : &*found;
}

HttpResponse file_response(const PageFile& file, const HttpRequest& request, const char* caching,
                           const char* vary) {
  const bool is_packed = !file.gzip.empty() && accepts_gzip(request.header("accept-encoding"));
  const std::string tag = fmt::format("\"{}{}\"", file.hash, is_packed ? "-gzip" : "");
  HttpResponse response{.status = 200,
                        .content_type = std::string(file.content_type),
                        .body = "",
                        .headers = {{"ETag", tag},
                                    {"Cache-Control", caching},
                                    {"Vary", vary},
                                    {"Content-Security-Policy", kContentPolicy},
                                    {"X-Content-Type-Options", "nosniff"},
                                    {"Referrer-Policy", "no-referrer"},
                                    {"Cross-Origin-Opener-Policy", "same-origin"}}};
  if (names_tag(request.header("if-none-match"), tag)) {
    response.status = 304;
    response.content_type.clear();
    return response;
  }
  if (is_packed) response.headers.emplace_back("Content-Encoding", "gzip");
  response.body = is_packed ? file.gzip : file.plain;
  return response;
}

PageFiles files_of(const ApiContext& context) {
  return context.page().empty() ? plain_page() : context.page();
}

}  // namespace

bool accepts_gzip(std::string_view accept_encoding) {
  bool accepts_others = false;
  while (!accept_encoding.empty()) {
    const std::string_view element = take_element(accept_encoding);
    const std::string coding = lower_text(trimmed(element.substr(0, element.find(';'))));
    const bool is_accepted = element.find(';') == std::string_view::npos ||
                             !is_refused(element.substr(element.find(';') + 1));
    if (coding == "gzip" || coding == "x-gzip") return is_accepted;
    if (coding == "*") accepts_others = is_accepted;
  }
  return accepts_others;
}

bool names_tag(std::string_view if_none_match, std::string_view tag) {
  while (!if_none_match.empty()) {
    std::string_view element = take_element(if_none_match);
    if (element == "*") return true;
    if (element.starts_with("W/")) element.remove_prefix(2);
    if (element == tag) return true;
  }
  return false;
}

void serve_page(ApiContext& context, const HttpRequest& request, const HttpReply& reply) {
  const std::string_view accepted = request.header("accept");
  if (!accepted.empty() && accepted.find("text/html") == std::string_view::npos) {
    return reply.send(
        {200, "text/plain; charset=utf-8", "Ollama is running", {{"Vary", "Accept"}}});
  }
  const PageFile* const page = find_file(files_of(context), "/");
  LOCKSTEP_CHECK(page != nullptr);  // the build and plain_page() see to it
  reply.send(file_response(*page, request, kPageCaching, "Accept, Accept-Encoding"));
}

void serve_asset(ApiContext& context, const HttpRequest& request, const HttpReply& reply) {
  const PageFile* const file = find_file(files_of(context), request.path);
  if (file != nullptr) {
    return reply.send(file_response(*file, request, kAssetCaching, "Accept-Encoding"));
  }
  HttpResponse refusal = error_response(
      {404, "the page of this program has no such file: reload the page", "", "asset_not_found"});
  refusal.headers.emplace_back("Cache-Control", "no-store");
  reply.send(std::move(refusal));
}

}  // namespace lockstep
