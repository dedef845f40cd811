// NodeAnswerer: answers by the API of a running node. It tells from the events of the node what an
// answer waits for and what happens to the cluster meanwhile. Blocks, with deadlines. One thread.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "cli/client/node_client.h"
#include "cli/stream/cluster_state.h"
#include "cli/stream/node_call.h"
#include "cli/stream/node_stream.h"
#include "cli/talk/answerer.h"
#include "cli/text/terminal_text.h"

namespace lockstep {

// A model that a node is to answer with.
struct NodeModel {
  std::string name;
  int64_t context = 0;
  bool has_template = true;
};

// Finds the model that `text` means, a served name, a path or a model of a hub, loads it if it is
// not wanted yet, and waits until it can answer, with its progress on stderr. Ctrl-C stops waiting
// (kCancelled), not loading. kUnsupported if the node can load no models (serve --alone). `status`:
// the node's of now.
Result<NodeModel> open_node_model(const NodeFlags& flags, const Json& status,
                                  const std::string& text, const TerminalManner& manner);

// By its status: a node that can load no models (serve --alone), and one that has what `text`
// means.
bool can_load_nothing(const Json& status);
bool serves_model(const Json& status, const std::string& text);

class NodeAnswerer : public Answerer {
 public:
  NodeAnswerer(NodeFlags flags, NodeModel model, const TerminalManner& manner)
      : flags_(std::move(flags)), model_(std::move(model)), manner_(manner) {}

  Result<TalkAnswer> answer(const Dialogue& conversation, const TalkSettings& settings,
                            TalkEvents& events) override;
  std::string model() const override { return model_.name; }
  int64_t context() const override { return model_.context; }
  Status choose_model(const std::string& model) override;
  std::vector<std::string> known_models() override;
  Result<std::vector<std::string>> node_lines() override;
  std::string place() const override;

 private:
  const NodeFlags flags_;
  NodeModel model_;
  const TerminalManner manner_;
};

// Tells what happens around an answer that is awaited: its place in the queue, a model that loads,
// a machine that is lost. Without access to the node's events it says only how long it has waited.
class AnswerWatch {
 public:
  using Clock = std::chrono::steady_clock;

  AnswerWatch(const NodeFlags& flags, std::string model);

  // A part of the answer has come.
  void note_text(Clock::time_point now) {
    last_text_ = now;
    has_text_ = true;
  }
  // Never waits for the node.
  void look(TalkEvents& events, Clock::time_point now);

 private:
  void read_events(TalkEvents& events);

  const NodeFlags flags_;
  const std::string model_;
  NodeStream stream_;  // of /cluster/events
  EventReader reader_;
  ClusterState state_;
  std::optional<NodeCall> requests_;  // that the node has not told yet
  bool has_ended_ = false;
  bool has_text_ = false;
  Clock::time_point last_text_;
  Clock::time_point next_look_;
};

}  // namespace lockstep
