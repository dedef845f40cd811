#include "cli/bench/bench_serve.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>

#include "base/files/open_files.h"
#include "base/version.h"
#include "cli/client/node_client.h"
#include "cli/text/output.h"
#include "net/http/http_client.h"
#include "server/server.h"

namespace lockstep {
namespace {

constexpr int kCommonVocabulary = 500;  // tokens that prompts for unknown servers may use

// A server of a model on this machine, like `lockstep serve --alone`, on a free port.
class OwnNode {
 public:
  OwnNode(const OwnNode&) = delete;
  OwnNode& operator=(const OwnNode&) = delete;
  ~OwnNode() {
    server_->stop_now();
    thread_.join();
  }

  static Result<std::unique_ptr<OwnNode>> start(const BenchServeFlags& flags) {
    GroupSupervisorOptions options = TRY(group_options(flags.group));
    options.queue_max = std::max(options.queue_max, flags.load.concurrency);
    std::shared_ptr<ModelService> group = TRY(start_group(options));
    auto server = TRY(Server::start({.port = 0, .version = kVersion}, ModelServices{group}));
    return std::unique_ptr<OwnNode>(new OwnNode(std::move(group), std::move(server)));
  }

  NetAddress address() const { return {"localhost", server_->port()}; }
  ModelStatus model() const { return group_->status(); }

 private:
  OwnNode(std::shared_ptr<ModelService> group, std::unique_ptr<Server> server)
      : group_(std::move(group)), server_(std::move(server)), thread_([this] { server_->run(); }) {}

  const std::shared_ptr<ModelService> group_;
  const std::unique_ptr<Server> server_;
  std::thread thread_;  // last: it uses the members above
};

Result<std::string> first_model(const LoadTarget& target) {
  HttpCall call{
      .host = target.address.host, .port = target.address.port, .target = target.base + "/models"};
  if (!target.api_key.empty()) {
    call.headers.emplace_back("Authorization", "Bearer " + target.api_key);
  }
  const HttpAnswer answer = TRY(call_http(call));
  const auto list = parse_json(answer.body);
  if (answer.status != 200 || !list.ok()) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} answered {} to GET {}; name the model with --model",
                             target.address.text(), answer.status, call.target)};
  }
  for (const Json& model : list_in(list.value(), "data")) {
    if (std::string id = text_in(model, "id"); !id.empty()) return id;
  }
  return Error{ErrorCode::kNotFound,
               fmt::format("{} lists no model; name one with --model", target.address.text())};
}

Status fit_to_node(const ModelStatus& model, LoadShape& shape) {
  const int needed = shape.prompt_tokens.most + shape.new_tokens.most;
  if (needed > model.context) {
    return Error{ErrorCode::kExhausted,
                 fmt::format("{} prompt and {} new tokens do not fit the context of {}; ask for "
                             "fewer, or give --context where the model has more positions",
                             shape.prompt_tokens.most, shape.new_tokens.most, model.context)};
  }
  if (model.vocab_size < kCommonVocabulary) {
    shape.first_token = 0;
    shape.token_count = model.vocab_size;
  }
  return Ok{};
}

void say_progress(uint64_t completed, uint64_t failed, int running) {
  show_progress(fmt::format("{} in flight, {} completed, {} failed", running, completed, failed));
}

}  // namespace

Result<Json> bench_serve(BenchServeFlags flags) {
  LoadOptions& load = flags.load;
  load.shape.prompt_tokens = TRY(parse_length_range(flags.prompt_tokens, "--prompt-tokens"));
  load.shape.new_tokens = TRY(parse_length_range(flags.new_tokens, "--new-tokens"));
  load.timeout = std::chrono::milliseconds(static_cast<int64_t>(flags.timeout_s * 1e3));
  raise_open_files_max();
  LoadTarget target;
  std::unique_ptr<OwnNode> node;
  if (flags.url.empty()) {
    node = TRY(OwnNode::start(flags));
    TRY(fit_to_node(node->model(), load.shape));
    target.address = node->address();
  } else {
    target = TRY(parse_load_target(flags.url));
  }
  target.api = flags.api == "chat" ? LoadApi::kChat : LoadApi::kCompletions;
  target.api_key = flags.api_key;
  target.temperature = flags.temperature;
  target.model = flags.model.empty() ? TRY(first_model(target)) : flags.model;
  const LoadFigures figures = run_load(target, load, say_progress);
  clear_progress();
  return Json(bench_serve_json(target, load, figures));
}

}  // namespace lockstep
