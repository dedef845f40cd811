// Link measurements where frames are shorter than the usual messages.
#include "collective/group/probe.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "support/pair_times.h"
#include "transport/pipe_link.h"

using namespace lockstep;

namespace {

// A link with short frames, such as RDMA without reliable connections.
class NarrowLink final : public Link {
 public:
  static constexpr size_t kFrameBytes = 16'320;

  explicit NarrowLink(std::unique_ptr<Link> inner) : inner_(std::move(inner)) {}

  size_t longest() const { return longest_; }

  size_t frame_bytes_max() const override { return kFrameBytes; }
  std::span<std::byte> acquire(size_t bytes) override {
    longest_ = std::max(longest_, bytes);
    return inner_->acquire(bytes);
  }
  void post() override { inner_->post(); }
  bool flush() override { return inner_->flush(); }
  std::span<const std::byte> peek() override { return inner_->peek(); }
  void release() override { inner_->release(); }
  void wait_readable(std::chrono::microseconds at_most) override { inner_->wait_readable(at_most); }
  Status health() const override { return inner_->health(); }

 private:
  std::unique_ptr<Link> inner_;
  size_t longest_ = 0;
};

const ProbeOptions kQuick{.rounds_max = 100, .budget = std::chrono::milliseconds(2)};

}  // namespace

TEST_CASE("a link whose frames are shorter than 16 KiB is measured with its largest frame") {
  auto links = open_pipe_links(2);
  NarrowLink low(std::move(links[0][1])), high(std::move(links[1][0]));
  Result<PairTimes> answered = PairTimes{};
  std::thread thread([&] { answered = probe_link(high, false, kQuick); });
  const Result<PairTimes> times = probe_link(low, true, kQuick);
  thread.join();
  REQUIRE_MESSAGE(times.ok(), times.error().message);
  CHECK(answered.ok());
  CHECK(is_probed(times.value()));
  CHECK(low.longest() == NarrowLink::kFrameBytes);
  CHECK(high.longest() <= NarrowLink::kFrameBytes);
}

TEST_CASE("a peer that is silent while a link is measured is an error at the deadline") {
  auto links = open_pipe_links(2);
  ProbeOptions options = kQuick;
  options.timeout = std::chrono::milliseconds(50);
  const Result<PairTimes> times = probe_link(*links[0][1], true, options);
  REQUIRE(!times.ok());
  CHECK(times.error().code == ErrorCode::kTimeout);
}
