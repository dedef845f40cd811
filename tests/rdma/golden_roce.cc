// The golden cases over the RDMA devices of the virtual machine that tools/rdma-vm starts, against
// one rank there and against one rank on the host, whose processor may have other instruction sets.
// LOCKSTEP_GOLDEN_SUMS names the file with the checksums computed outside.
#include <doctest/doctest.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "support/golden.h"
#include "support/rank_threads.h"
#include "support/verbs_ranks.h"

using namespace lockstep;

namespace {

constexpr std::array kHosts{"10.77.0.1", "10.77.0.2"};
// These also run on three ranks; an emulated processor is slow.
constexpr std::array kSomeCases{"llama3-bf16", "qwen3moe-q4-g64", "deepseekv3-q4-g64",
                                "gptoss-mxfp4"};

GenerateRequest request_of(const std::string& name) {
  return {
      .prompt = read_golden(golden_folder(name)).prompt, .max_tokens = 4, .prompt_logits = true};
}

Answer answer_of_one_rank(const std::string& name) {
  return run_ranks(golden_folder(name), {}, {request_of(name)}).answers[0];
}

// FNV-1a over all bits of the logits and the tokens.
uint64_t sum_of(const Answer& answer) {
  uint64_t sum = 0xcbf29ce484222325;
  const auto add = [&](const void* bytes, size_t size) {
    for (size_t i = 0; i < size; ++i) {
      sum = (sum ^ static_cast<const uint8_t*>(bytes)[i]) * 0x100000001b3;
    }
  };
  for (const std::vector<float>& row : answer.logits) add(row.data(), row.size() * sizeof(float));
  add(answer.tokens.data(), answer.tokens.size() * sizeof(int32_t));
  return sum;
}

std::string sums_file() {
  const char* const named = std::getenv("LOCKSTEP_GOLDEN_SUMS");
  REQUIRE_MESSAGE(named != nullptr, "LOCKSTEP_GOLDEN_SUMS must name a file");
  return named;
}

std::string best_isa() {
  return available_kernels().back()->name;
}

std::vector<VerbsRank> open_ranks(size_t count, bool unreliable) {
  std::vector<VerbsRank> ranks;
  for (size_t rank = 0; rank < count; ++rank) {
    auto devices = VerbsDevices::open({.unreliable = unreliable});
    REQUIRE_MESSAGE(devices.ok(), devices.error().message);
    ranks.push_back({std::move(devices.value()), kHosts[rank % kHosts.size()]});
  }
  return ranks;
}

}  // namespace

TEST_SUITE("outside") {
  TEST_CASE("answers from one rank") {
    std::ofstream file(sums_file());
    file << best_isa() << '\n';
    for (const std::string& name : all_golden_cases()) {
      file << name << ' ' << sum_of(answer_of_one_rank(name)) << '\n';
    }
    REQUIRE(file.flush().good());
  }
}

TEST_SUITE("inside") {
  TEST_CASE("golden cases over soft-RoCE, RC and UC, equal those of one rank here and outside") {
    std::ifstream file(sums_file());
    std::string outer_isa, named;
    REQUIRE(std::getline(file, outer_isa).good());
    std::map<std::string, uint64_t> outer;
    for (uint64_t sum; file >> named >> sum;) outer[named] = sum;
    REQUIRE(outer.size() == all_golden_cases().size());
    MESSAGE("outside ", outer_isa, ", here ", best_isa());

    uint32_t epoch = 0;
    std::map<std::string, Answer> references;
    for (const std::string& name : all_golden_cases()) {
      references[name] = answer_of_one_rank(name);
      CHECK_MESSAGE(sum_of(references[name]) == outer.at(name), name);
    }
    const auto check = [&](const std::vector<VerbsRank>& ranks, bool unreliable,
                           const std::string& name) {
      // A line: three ranks on two devices, each link from one device to the other.
      const Setup setup{.shares = std::vector<double>(ranks.size(), 1.0),
                        .link = LinkKind::kVerbs,
                        .topology = Topology::kLine};
      LocalLinks links = open_verbs_links(ranks, link_options_of(setup), ++epoch);
      check_are_verbs(links, !unreliable);
      const Outcome outcome =
          run_ranks_over(std::move(links), golden_folder(name), setup, {request_of(name)});
      CHECK_MESSAGE(same_bits(outcome.answers[0], references.at(name)), name, ", ", ranks.size(),
                    " ranks, ", unreliable ? "UC" : "RC");
    };
    for (const bool unreliable : {false, true}) {
      const std::vector<VerbsRank> two = open_ranks(2, unreliable);
      for (const std::string& name : all_golden_cases()) check(two, unreliable, name);
      const std::vector<VerbsRank> three = open_ranks(3, unreliable);
      for (const char* name : kSomeCases) check(three, unreliable, name);
    }
  }
}
