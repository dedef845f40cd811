// Every golden case over every kind of link: the bits of one rank, also with several rails, and
// where most ranks reach each other through relays. tests/rdma does the same over devices.
#include <doctest/doctest.h>

#include <span>
#include <string>
#include <vector>

#include "support/golden.h"
#include "support/rank_threads.h"
#include "support/verbs_ranks.h"
#ifdef LOCKSTEP_HAS_VERBS
#include "transport/fake_devices.h"
#endif

using namespace lockstep;

namespace {

// One case per family and per unusual storage format.
constexpr const char* kSomeCases[] = {"llama3-bf16", "qwen3moe-q4-g64", "deepseekv3-q4-g64",
                                      "gptoss-mxfp4"};

struct GoldenAnswer {
  std::string folder;
  GenerateRequest request;
  Answer reference;  // from one rank
};

GoldenAnswer golden_answer(const std::string& name) {
  GoldenAnswer golden{.folder = golden_folder(name), .request = {}, .reference = {}};
  golden.request = {
      .prompt = read_golden(golden.folder).prompt, .max_tokens = 8, .prompt_logits = true};
  golden.reference = run_ranks(golden.folder, {}, {golden.request}).answers[0];
  REQUIRE(golden.reference.logits.size() == golden.request.prompt.size());
  REQUIRE(golden.reference.tokens.size() == 8);
  return golden;
}

void check_setup(const GoldenAnswer& golden, const Setup& setup) {
  const Outcome outcome = run_ranks(golden.folder, setup, {golden.request});
  CHECK_MESSAGE(same_bits(outcome.answers[0], golden.reference), setup.shares.size(), " ranks, ",
                link_kind_name(setup.link), ", ", topology_name(setup.topology), ", ", setup.rails,
                " rails");
}

std::vector<double> equal_shares(size_t ranks) {
  return std::vector<double>(ranks, 1.0);
}

}  // namespace

TEST_CASE("ranks without a link for each pair give the same bits through relays") {
  for (const std::string& name : all_golden_cases()) {
    CAPTURE(name);
    const GoldenAnswer golden = golden_answer(name);
    for (const Topology topology : {Topology::kLine, Topology::kRing, Topology::kStar}) {
      for (const size_t ranks : {4, 6}) {
        for (const LinkKind link : {LinkKind::kShm, LinkKind::kTcp}) {
          check_setup(golden, {.shares = equal_shares(ranks), .link = link, .topology = topology});
        }
      }
    }
  }
}

TEST_CASE("several connections to each peer give the same bits") {
  for (const std::string& name : all_golden_cases()) {
    CAPTURE(name);
    check_setup(golden_answer(name), {.shares = {2, 1}, .link = LinkKind::kTcp, .rails = 2});
  }
  for (const std::string name : kSomeCases) {
    CAPTURE(name);
    const GoldenAnswer golden = golden_answer(name);
    for (const size_t ranks : {3, 4}) {
      check_setup(golden, {.shares = equal_shares(ranks), .link = LinkKind::kTcp, .rails = 2});
    }
    check_setup(golden, {.shares = equal_shares(4),
                         .link = LinkKind::kTcp,
                         .topology = Topology::kRing,
                         .rails = 3});
  }
}

#ifdef LOCKSTEP_HAS_VERBS

namespace {

// Machines that form one group after the other over the fake library.
class FakeMachines {
 public:
  explicit FakeMachines(FakeMode mode) : fake_(mode), is_reliable_(mode == FakeMode::kReliable) {}

  // Runs `setup` over new links between the first of these machines, all over RDMA.
  void check(const GoldenAnswer& golden, Setup setup) {
    setup.link = LinkKind::kVerbs;
    while (ranks_.size() < setup.shares.size())
      ranks_.push_back({open_fake_devices(), "127.0.0.1"});
    const std::span<const VerbsRank> ranks = std::span(ranks_).first(setup.shares.size());
    LocalLinks links = open_verbs_links(ranks, link_options_of(setup), ++epoch_);
    if (setup.rails == 1) check_are_verbs(links, is_reliable_);
    const uint64_t before = fake_->messages;
    const Outcome outcome =
        run_ranks_over(std::move(links), golden.folder, setup, {golden.request});
    CHECK_MESSAGE(same_bits(outcome.answers[0], golden.reference), setup.shares.size(), " ranks, ",
                  topology_name(setup.topology), ", ", setup.rails, " rails");
    // At least one exchange per step uses RDMA, in both directions.
    CHECK(fake_->messages - before > 2 * golden.reference.tokens.size());
    CHECK(fake_->early_messages == 0);
    CHECK(fake_->overflows == 0);
    CHECK(fake_->unequal_buffers == 0);
  }

 private:
  FakeScope fake_;
  const bool is_reliable_;
  std::vector<VerbsRank> ranks_;
  uint32_t epoch_ = 0;
};

}  // namespace

TEST_CASE("ranks that are joined over RDMA give the same bits, reliable or as on Macs") {
  for (const FakeMode mode : {FakeMode::kReliable, FakeMode::kApple}) {
    CAPTURE(static_cast<int>(mode));
    FakeMachines machines(mode);
    for (const std::string& name : all_golden_cases()) {
      CAPTURE(name);
      const GoldenAnswer golden = golden_answer(name);
      for (const std::vector<double>& shares :
           {std::vector<double>{1, 1}, {3, 1}, {2, 1, 1}, {1, 1, 1, 1}}) {
        machines.check(golden, {.shares = shares});
      }
      machines.check(golden, {.shares = {1, 1}, .rails = 2});
    }
    for (const std::string name : kSomeCases) {
      CAPTURE(name);
      const GoldenAnswer golden = golden_answer(name);
      for (const Topology topology : {Topology::kLine, Topology::kRing, Topology::kStar}) {
        machines.check(golden, {.shares = equal_shares(4), .topology = topology});
      }
      machines.check(golden, {.shares = equal_shares(3), .rails = 2});
      machines.check(golden, {.shares = equal_shares(4), .rails = 2});
      machines.check(golden, {.shares = {1, 2, 1, 1}, .stages = 2});
    }
  }
}

#endif
