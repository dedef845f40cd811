#include "cli/top/top_feed.h"

#include <fmt/core.h>

#include <thread>
#include <utility>

#include "cli/text/terminal_text.h"

namespace lockstep {
namespace {

constexpr std::chrono::seconds kRequestsPeriod{1};
constexpr std::chrono::seconds kConnectPeriod{1};

}  // namespace

TopFeed::TopFeed(NodeFlags flags) : flags_(std::move(flags)) {
  connect();
}

void TopFeed::connect() {
  reader_ = EventReader();
  // With control, if there is any, it has the PINs.
  events_ = std::make_unique<NodeStream>(flags_, HttpCall{.target = "/cluster/events"}, true);
  next_connect_ = Clock::now() + kConnectPeriod;
}

void TopFeed::take(std::chrono::milliseconds limit, TopFacts& facts) {
  const auto now = Clock::now();
  take_requests(facts, now);
  if (!events_ && now >= next_connect_) connect();
  if (!events_) {
    std::this_thread::sleep_for(limit);
    return;
  }
  const NodeStream::Step step = events_->next(limit);
  if (step.kind != NodeStream::Kind::kNothing) take_piece(step, facts);
}

void TopFeed::take_piece(const NodeStream::Step& step, TopFacts& facts) {
  const auto lose = [&](std::string_view reason) {
    facts.problem =
        fmt::format("the node does not answer ({}); trying again", harmless_line(reason));
    events_.reset();
    next_connect_ = Clock::now() + kConnectPeriod;
  };
  if (step.kind == NodeStream::Kind::kEnd) return lose("it has ended");
  if (step.kind == NodeStream::Kind::kFailure) return lose(step.error->message);
  auto events = reader_.take(step.piece);
  if (!events.ok()) return lose(events.error().message);
  for (const ServerEvent& event : events.value()) {
    const auto change = facts.cluster.take(event);
    if (!change.ok()) return lose(change.error().message);
    has_begun_ = true;
    facts.problem.clear();
    const bool has_happened = change.value() == ClusterState::Change::kHappened;
    if (has_happened && on_happening_) on_happening_(facts.cluster.happened().back());
  }
}

void TopFeed::take_requests(TopFacts& facts, Clock::time_point now) {
  if (!requests_) {
    if (now < next_requests_ || !has_begun_) return;
    requests_.emplace(flags_, HttpCall{.target = "/cluster/requests"});
  }
  auto answer = requests_->poll();
  if (!answer) return;
  requests_.reset();
  next_requests_ = now + kRequestsPeriod;
  if (answer->ok()) facts.requests = std::move(answer->value());
}

}  // namespace lockstep
