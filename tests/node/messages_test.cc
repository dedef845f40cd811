#include "node/wire/messages.h"

#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <vector>

using namespace lockstep;

TEST_CASE("a request's hints for speed and reports reach the worker") {
  GenerateRequest request;
  request.prompt = {1};
  request.guess = {4, -1};
  request.reports_progress = true;
  const auto decoded = decode_request(encode_request(1, request));
  REQUIRE(decoded.ok());
  CHECK(decoded.value().second.guess == request.guess);
  CHECK(decoded.value().second.reports_progress);
}

TEST_CASE("a request reaches the worker bit for bit") {
  GenerateRequest request;
  request.prompt = {0, 1, 2'147'483'647};
  request.max_tokens = 7;
  request.stop_ids = {2, 3};
  request.sampling.temperature = 0.7f;
  request.sampling.top_k = 40;
  request.sampling.top_p = std::numeric_limits<float>::denorm_min();
  request.sampling.seed = ~uint64_t{0};
  request.prompt_logits = true;
  request.draft_logits = true;
  request.chunk = 32;
  request.draft_tokens = 5;
  request.pooling = Pooling::kMean;
  request.resumed_tokens = 2;
  request.constraint = R"({"regex": "a+"})";
  request.logit_bias = {{7, -100.0f}, {9, 0.5f}};
  request.dry_breakers = {13};
  request.min_tokens = 3;
  request.top_logprobs = 20;
  request.client = ~uint64_t{0};
  request.priority = -1;
  request.sampling.min_p = 0.05f;
  request.sampling.typical_p = 0.9f;
  request.sampling.repetition_penalty = 1.1f;
  request.sampling.penalty_tokens = 64;
  request.sampling.presence_penalty = -0.5f;
  request.sampling.frequency_penalty = 0.25f;
  request.sampling.dry_multiplier = 0.8f;
  request.sampling.dry_base = 1.5f;
  request.sampling.dry_allowed_length = 4;
  request.sampling.dry_tokens = 256;
  const auto decoded = decode_request(encode_request(~uint64_t{1}, request));
  REQUIRE(decoded.ok());
  const auto& [id, copy] = decoded.value();
  CHECK(id == ~uint64_t{1});
  CHECK(copy.prompt == request.prompt);
  CHECK(copy.max_tokens == 7);
  CHECK(copy.stop_ids == request.stop_ids);
  CHECK(copy.sampling.temperature == request.sampling.temperature);
  CHECK(copy.sampling.top_k == 40);
  CHECK(copy.sampling.top_p == request.sampling.top_p);
  CHECK(copy.sampling.seed == request.sampling.seed);
  CHECK(copy.prompt_logits);
  CHECK(copy.draft_logits);
  CHECK(copy.chunk == 32);
  CHECK(copy.draft_tokens == 5);
  CHECK(copy.pooling == Pooling::kMean);
  CHECK(copy.resumed_tokens == 2);
  CHECK(copy.constraint == request.constraint);
  REQUIRE(copy.logit_bias.size() == 2);
  CHECK(copy.logit_bias[0].token == 7);
  CHECK(copy.logit_bias[1].bias == 0.5f);
  CHECK(copy.dry_breakers == request.dry_breakers);
  CHECK(copy.min_tokens == 3);
  CHECK(copy.top_logprobs == 20);
  CHECK(copy.client == ~uint64_t{0});
  CHECK(copy.priority == -1);
  CHECK(copy.sampling.min_p == 0.05f);
  CHECK(copy.sampling.typical_p == 0.9f);
  CHECK(copy.sampling.repetition_penalty == 1.1f);
  CHECK(copy.sampling.penalty_tokens == 64);
  CHECK(copy.sampling.presence_penalty == -0.5f);
  CHECK(copy.sampling.frequency_penalty == 0.25f);
  CHECK(copy.sampling.dry_multiplier == 0.8f);
  CHECK(copy.sampling.dry_base == 1.5f);
  CHECK(copy.sampling.dry_allowed_length == 4);
  CHECK(copy.sampling.dry_tokens == 256);
}

TEST_CASE("the tokens of a prompt are sent as bytes") {
  GenerateRequest request;
  request.prompt = {0x04030201, -1};
  const std::string bytes = encode_request(0x0807060504030201, request);
  CHECK(bytes.substr(0, 20) ==
        std::string("\1\2\3\4\5\6\7\10\2\0\0\0\1\2\3\4\xff\xff\xff\xff", 20));
  CHECK(bytes[20] == '{');
  CHECK(decode_request_id(bytes).value() == 0x0807060504030201);
  CHECK_FALSE(decode_request_id("1234567").ok());
  const size_t options_bytes = bytes.size() - 20;
  request.prompt.assign(1'000'000, 123'456);
  CHECK(encode_request(1, request).size() == 12 + 4'000'000 + options_bytes);
}

TEST_CASE("more resumed tokens than the prompt has are refused") {
  GenerateRequest request;
  request.prompt = {1, 2};
  request.resumed_tokens = 3;
  CHECK_FALSE(decode_request(encode_request(1, request)).ok());
}

TEST_CASE("small messages arrive unchanged") {
  CHECK(decode_id(encode_id(~uint64_t{0})).value() == ~uint64_t{0});
  CHECK(decode_heartbeat(encode_heartbeat({3, -2})).value().state == -2);
  CHECK(decode_load_bytes(encode_load_bytes({5, UINT64_MAX})).value() == LoadBytes{5, UINT64_MAX});
  CHECK_FALSE(decode_load_bytes("short").ok());
  const std::vector<LinkReading> links{{0, 1, 2, 3, 4}, {63, UINT64_MAX, 0, 0, UINT32_MAX}};
  CHECK(decode_link_readings(encode_link_readings(links)).value() == links);
  CHECK(decode_link_readings("").value().empty());
  CHECK_FALSE(decode_link_readings("not a multiple of a link's bytes").ok());
  CHECK_FALSE(decode_link_readings(encode_link_readings(std::vector{links[0], links[0]})).ok());
  CHECK_FALSE(decode_link_readings(encode_link_readings(std::vector(65, links[0]))).ok());
  const PageStoreCounts counts{.bytes = ~uint64_t{0}, .pages = 2, .saved = 3, .loaded = 4};
  CHECK(decode_page_counts(encode_page_counts(counts)).value() == counts);
  CHECK_FALSE(decode_page_counts(encode_id(5)).ok());
  const DraftCounts drafts{.steps = 1, .guesses = ~uint64_t{0}, .right = 3, .exchanges = 4};
  CHECK(decode_draft_counts(encode_draft_counts(drafts)).value() == drafts);
  CHECK_FALSE(decode_draft_counts(encode_id(5)).ok());
  const EpochSetup epoch = decode_epoch(encode_epoch({~uint64_t{0}, "abc"})).value();
  CHECK(epoch.epoch == ~uint64_t{0});
  CHECK(epoch.token == "abc");
  const auto error = decode_error(encode_error({ErrorCode::kExhausted, "full"})).value().error;
  CHECK(error.code == ErrorCode::kExhausted);
  CHECK(error.message == "full");
  const std::vector<RankListening> ports{{1, {"10.86.12.1", "fd00::1"}}, {65535, {}}};
  CHECK(decode_listening(encode_listening(ports)).value() == ports);
  const CollectiveTimes times{1, 2, 3, 4, 5};
  CHECK(decode_times(encode_times(times)).value().p99_us == 3);
  const PairTimes pairs[] = {{.a = 0, .b = 1, .p50_us = 2}, {.a = 0, .b = 2, .gbit_s = 9}};
  const auto copies = decode_pairs(encode_pairs(pairs));
  REQUIRE(copies.ok());
  REQUIRE(copies.value().size() == 2);
  CHECK(copies.value()[0].p50_us == 2);
  CHECK(copies.value()[1].b == 2);
  CHECK(copies.value()[1].gbit_s == 9);
  const auto report = decode_report(encode_report({.weight_bytes = 1,
                                                   .state_bytes = 3,
                                                   .vocab_size = 5,
                                                   .identity = "ab",
                                                   .device = "cpu (avx2, 8 threads)"}));
  CHECK(report.value().device == "cpu (avx2, 8 threads)");
  CHECK(report.value().state_bytes == 3);
  CHECK(report.value().vocab_size == 5);
  CHECK(report.value().identity == "ab");
  CHECK(report.value().quantised.empty());
  LoadReport quantised;
  quantised.quantised.add({"a", 4, uint64_t{1} << 40, {0.1, 1.0 / 3, 0.25f}});
  quantised.quantised.add({"b", 8, 3, {0, 0, 0}});
  const auto decoded = decode_report(encode_report(quantised));
  REQUIRE(decoded.ok());
  REQUIRE(decoded.value().quantised.tensors().size() == 2);
  const TensorError& first = decoded.value().quantised.tensors()[0];
  CHECK(first.name == "a");
  CHECK(first.bits == 4);
  CHECK(first.weights == uint64_t{1} << 40);
  CHECK(first.error.squared_error == 0.1);
  CHECK(first.error.squared_weight == 1.0 / 3);
  CHECK(first.error.largest == 0.25f);
}

TEST_CASE("a rank's report of its epoch arrives unchanged") {
  EpochReport report{.epoch = ~uint64_t{0}, .late_calls = 4, .late_frames = 5};
  report.links.push_back({.peer = 2,
                          .path = LinkPath::kVerbsUc,
                          .rails = 3,
                          .tcp_rails = 1,
                          .reason = "a \"quoted\" reason",
                          .own_host = "10.86.12.1",
                          .peer_host = "10.86.12.2",
                          .device = "rdma_en5",
                          .network_note = "join the two"});
  report.links.push_back({.peer = 3, .path = LinkPath::kTcp, .is_encrypted = true});
  report.pairs.push_back({.a = 1, .b = 2, .p50_us = 0.1, .p99_us = 1.0 / 3, .gbit_s = 40});
  const auto copy = decode_epoch_report(encode_epoch_report(report));
  REQUIRE(copy.ok());
  CHECK(copy.value().epoch == ~uint64_t{0});
  CHECK(copy.value().late_calls == 4);
  CHECK(copy.value().late_frames == 5);
  REQUIRE(copy.value().links.size() == 2);
  const LinkUse& first = copy.value().links[0];
  CHECK(first.peer == 2);
  CHECK(first.path == LinkPath::kVerbsUc);
  CHECK(first.rails == 3);
  CHECK(first.tcp_rails == 1);
  CHECK_FALSE(first.is_encrypted);
  CHECK(first.reason == "a \"quoted\" reason");
  CHECK(first.own_host == "10.86.12.1");
  CHECK(first.peer_host == "10.86.12.2");
  CHECK(first.device == "rdma_en5");
  CHECK(first.network_note == "join the two");
  CHECK(copy.value().links[1].is_encrypted);
  REQUIRE(copy.value().pairs.size() == 1);
  CHECK(copy.value().pairs[0].p50_us == 0.1);
  CHECK(copy.value().pairs[0].p99_us == 1.0 / 3);
}

TEST_CASE("invalid payloads are errors") {
  CHECK_FALSE(decode_error(encode_heartbeat({1000, 0})).ok());
  CHECK_FALSE(decode_times("1234").ok());
  CHECK_FALSE(decode_pairs("1234").ok());
  CHECK_FALSE(decode_request("").ok());
  CHECK_FALSE(decode_request("{}").ok());
  CHECK_FALSE(decode_request("0123456789ab").ok());                // a huge prompt
  CHECK_FALSE(decode_request(std::string(12, '\0')).ok());         // no options
  CHECK_FALSE(decode_request(std::string(12, '\0') + "{}").ok());  // too few
  CHECK_FALSE(decode_request(std::string("\1\0\0\0\0\0\0\0\2\0\0\0"
                                         "1234{}",
                                         18))
                  .ok());
  CHECK_FALSE(decode_setup("[]").ok());
  WorkerSetup setup;
  setup.rank = 1;
  CHECK_FALSE(decode_setup(encode_setup(setup)).ok());
  for (const char* text :
       {"", "{}", "[1]", R"([{"port":0,"rdma_hosts":[]}])", R"([{"port":65536,"rdma_hosts":[]}])",
        R"([{"port":1}])", R"([{"port":1,"rdma_hosts":[2]}])"}) {
    CAPTURE(text);
    CHECK_FALSE(decode_listening(text).ok());
  }
  const std::vector<std::string> many(kDataAddressesMax + 1, "10.9.0.1");
  CHECK_FALSE(decode_listening(encode_listening(std::vector<RankListening>{{1, many}})).ok());
  const std::vector<std::string> one_long{std::string(kHostBytesMax + 1, '1')};
  CHECK_FALSE(decode_listening(encode_listening(std::vector<RankListening>{{1, one_long}})).ok());
  CHECK_FALSE(decode_epoch("1234567").ok());
  CHECK_FALSE(decode_epoch_report("12345678").ok());
  CHECK_FALSE(decode_epoch_report(R"({"epoch": 1, "late_calls": 0, "late_frames": 0})").ok());
}
