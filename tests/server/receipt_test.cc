// The text of a receipt, and the texts that it hashes.
#include "server/generation/receipt.h"

#include <doctest/doctest.h>

namespace lockstep {
namespace {

Receipt some_receipt() {
  return {.version = "0.1.0",
          .model = std::string(64, '1'),
          .request = std::string(64, '2'),
          .answer = std::string(64, 'f'),
          .end = AnswerEnd::kLength,
          .seed = ~uint64_t{0}};
}

}  // namespace

TEST_CASE("a receipt is one line that can be read again") {
  for (const AnswerEnd end : {AnswerEnd::kToken, AnswerEnd::kLength, AnswerEnd::kString}) {
    Receipt receipt = some_receipt();
    receipt.end = end;
    const auto read = parse_receipt(receipt_text(receipt));
    REQUIRE(read.ok());
    CHECK(read.value() == receipt);
  }
  CHECK(receipt_text(some_receipt()) == "lockstep-receipt-1:0.1.0:" + std::string(64, '1') + ":" +
                                            std::string(64, '2') + ":" + std::string(64, 'f') +
                                            ":length:18446744073709551615");
}

TEST_CASE("a text that is no receipt is refused") {
  const std::string good = receipt_text(some_receipt());
  const std::string hash(64, '1');
  for (const std::string& bad :
       {std::string(), good + " ", good + ":", " " + good, good.substr(0, good.size() - 1) + "6",
        good.substr(1), "lockstep-receipt-2" + good.substr(18), good + "0", std::string(1000, ':'),
        "lockstep-receipt-1::" + hash + ":" + hash + ":" + hash + ":end:1",
        "lockstep-receipt-1:0.1.0:" + hash + ":" + hash + ":" + hash + ":stop:1",
        "lockstep-receipt-1:0.1.0:" + hash + ":" + hash + ":" + hash + ":end:01",
        "lockstep-receipt-1:0.1.0:" + hash + ":" + hash + ":" + hash + ":end:-1",
        "lockstep-receipt-1:0.1.0:" + hash + ":" + hash + ":" + hash.substr(1) + ":end:1",
        "lockstep-receipt-1:0.1.0:" + hash + ":" + hash + ":" + std::string(64, 'g') + ":end:1",
        "lockstep-receipt-1:" + std::string(65, 'v') + ":" + hash + ":" + hash + ":" + hash +
            ":end:1"}) {
    const auto read = parse_receipt(bad);
    CHECK_MESSAGE(!read.ok(), bad);
  }
}

TEST_CASE("the canonical text of a request, letter by letter") {
  GenerateRequest request;
  request.prompt = {256, 104, 105};
  request.sampling = {.temperature = 0.7f, .top_k = 40, .top_p = 0.9f, .seed = 7};
  request.logit_bias = {{.token = 5, .bias = -1.5f}};
  request.stop_ids = {257};
  request.constraint = "a\nb";
  CHECK(request_text(request, {"\n\n"}) ==
        "lockstep request 1\n"
        "prompt 3 256 104 105\n"
        "seed 7\n"
        "temperature 0.7\n"
        "top_k 40\n"
        "top_p 0.9\n"
        "min_p 0\n"
        "typical_p 1\n"
        "repetition_penalty 1\n"
        "penalty_tokens -1\n"
        "presence_penalty 0\n"
        "frequency_penalty 0\n"
        "dry_multiplier 0\n"
        "dry_base 1.75\n"
        "dry_allowed_length 2\n"
        "dry_tokens -1\n"
        "logit_bias 1 5:-1.5\n"
        "dry_breakers 0\n"
        "stop_ids 1 257\n"
        "min_tokens 0\n"
        "constraint 3\na\nb\n"
        "stop 2\n\n\n\n");
}

TEST_CASE("everything that moves a bit of the answer moves the hash, and hints for speed do not") {
  GenerateRequest request;
  request.prompt = {1, 2};
  const std::string plain = request_hash(request, {});
  const auto changed = [&](auto change) {
    GenerateRequest other = request;
    change(other);
    return request_hash(other, {});
  };
  CHECK(changed([](GenerateRequest& r) { r.prompt = {1, 3}; }) != plain);
  CHECK(changed([](GenerateRequest& r) { r.prompt = {12}; }) != plain);
  CHECK(changed([](GenerateRequest& r) { r.sampling.seed = 1; }) != plain);
  CHECK(changed([](GenerateRequest& r) { r.sampling.dry_tokens = 9; }) != plain);
  CHECK(changed([](GenerateRequest& r) { r.constraint = "x"; }) != plain);
  CHECK(changed([](GenerateRequest& r) { r.stop_ids = {2}; }) != plain);
  CHECK(changed([](GenerateRequest& r) { r.min_tokens = 2; }) != plain);
  CHECK(request_hash(request, {"x"}) != plain);
  CHECK(request_hash(request, {"x", ""}) != request_hash(request, {"x"}));
  CHECK(changed([](GenerateRequest& r) {
          r.max_tokens = 99;
          r.draft_tokens = 4;
          r.guess = {1};
          r.client = 8;
          r.top_logprobs = 3;
        }) == plain);
  const std::vector<int32_t> ids{1, 2};
  CHECK(answer_hash(ids, AnswerEnd::kToken) != answer_hash(ids, AnswerEnd::kLength));
  CHECK(answer_hash({}, AnswerEnd::kToken) != answer_hash(ids, AnswerEnd::kToken));
}

}  // namespace lockstep
