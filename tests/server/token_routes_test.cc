// /tokenize and /detokenize: answers, refusals, and the memory they take.
#include <fstream>

#include "server/served.h"
#include "server/token_routes.h"
#include "support/sanitizers.h"
#include "support/sizes.h"

namespace lockstep {
namespace {

using std::string_view_literals::operator""sv;

// The peak memory of this process since the last call, in bytes; 0 if the system does not report
// it.
size_t take_peak_bytes() {
  size_t kib = 0;
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word == "VmHWM:") status >> kib;
  }
  std::ofstream reset("/proc/self/clear_refs");
  reset << "5";
  reset.flush();
  return reset.good() ? kib * 1024 : 0;
}

class TokenServer {
 public:
  explicit TokenServer(int context)
      : server([](ServerOptions& options) { options.limits.body_bytes_max = 16 * kMiB; }) {
    server.model->set_context(context);
  }
  Answer tokenize(size_t bytes, bool has_pieces) {
    return server.post("/tokenize", R"({"content":")" + std::string(bytes, 'a') +
                                        R"(","with_pieces":)" + (has_pieces ? "true" : "false") +
                                        "}");
  }
  Answer detokenize(size_t tokens) {
    std::string list;
    for (size_t i = 0; i < tokens; ++i) list += i == 0 ? "97" : ",97";
    return server.post("/detokenize", R"({"tokens":[)" + list + "]}");
  }
  Served server;
};

}  // namespace

TEST_CASE("a text may be a small multiple of the context, but not longer") {
  TokenServer small(1000);
  CHECK(small.tokenize(kMiB, false).status == 200);
  const Answer refused = small.tokenize(kMiB + 1, false);
  CHECK(refused.status == 400);
  CHECK(text_at(at(refused.json(), "error", "code")) == "context_length_exceeded");
  CHECK(text_at(at(refused.json(), "error", "param")) == "content");
  CHECK(small.detokenize(32 << 10).status == 200);
  CHECK(small.detokenize((32 << 10) + 1).status == 400);
  TokenServer large(131'072);
  CHECK(large.tokenize(4 * kMiB, false).status == 200);
  CHECK(large.tokenize(4 * kMiB + 1, false).status == 400);
  CHECK(large.detokenize(1 << 20).status == 200);
  CHECK(large.detokenize((1 << 20) + 1).status == 400);
}

TEST_CASE("an answer that would be too long is refused with a sentence") {
  TokenServer server(131'072);
  const Answer refused = server.tokenize(4 * kMiB, true);
  CHECK(refused.status == 400);
  CHECK(text_at(at(refused.json(), "error", "code")) == "answer_too_long");
  CHECK(text_at(at(refused.json(), "error", "message")).find("send the text in parts") !=
        std::string::npos);
}

TEST_CASE("the pieces of a text take a small multiple of their answer in memory") {
  TokenServer server(131'072);
  CHECK(server.tokenize(100, true).status == 200);
  const size_t bytes = kMiB;
  take_peak_bytes();
  const size_t before = take_peak_bytes();
  const Answer answer = server.tokenize(bytes, true);
  const size_t peak = take_peak_bytes();
  CHECK(answer.status == 200);
  CHECK(answer.body.size() ==
        R"({"tokens":[]})"sv.size() + bytes * R"({"id":97,"piece":"a"},)"sv.size() - 1);
  if (before == 0 || peak == 0) {
    MESSAGE("this system does not tell the peak of a process's memory: not tested");
    return;
  }
  MESSAGE("before ", before / kMiB, " MiB, at most ", peak / kMiB, " MiB; the answer has ",
          answer.body.size() / kMiB, " MiB");
  // The client in this test has its own copies of the answer, which count too.
  if (!kHasSanitizer) CHECK(peak - before < 8 * answer.body.size());
}

}  // namespace lockstep
