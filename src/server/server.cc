#include "server/server.h"

#include <utility>

#include "server/generation/api_context.h"
#include "server/operations/control_routes.h"
#include "server/operations/status_watch.h"
#include "server/routes.h"

namespace lockstep {

struct Server::Impl {
  ApiContext context;
  StatusWatch watch{context};        // ends before the context
  std::unique_ptr<HttpServer> http;  // destroyed first: its handlers use the context

  Impl(std::shared_ptr<ModelDirectory> models, ClusterControl* cluster,
       const ServerOptions& options, std::unique_ptr<AccessControl> access)
      : context(std::move(models), cluster,
                {.version = options.version,
                 .silence_max = options.silence_max,
                 .draft_tokens = options.draft_tokens,
                 .claude_model = options.claude_model,
                 .power = options.power,
                 .machine = options.machine,
                 .budget_bytes = options.budget_bytes,
                 .own_offer = options.own_offer,
                 .desk = options.desk,
                 .streams = options.streams,
                 .page = options.page,
                 .own_paths = options.own_paths,
                 .kill_worker = options.kill_worker,
                 .program = options.program},
                std::move(access)) {}
};

Result<std::unique_ptr<Server>> Server::start(ServerOptions options, ModelServices models) {
  return start(std::move(options), std::make_shared<FixedModels>(std::move(models)), nullptr);
}

Result<std::unique_ptr<Server>> Server::start(ServerOptions options,
                                              std::shared_ptr<ModelDirectory> models,
                                              ClusterControl* cluster) {
  auto access = TRY(AccessControl::open(options.access));
  TRY(access->check_host(options.host));
  AccessControl* const control = access.get();
  auto impl = std::make_unique<Impl>(std::move(models), cluster, options, std::move(access));
  options.limits.error_body = [](int status, std::string_view message, std::string_view path) {
    return error_json({status, std::string(message)}, error_style_of(path));
  };
  options.limits.admit = [context = &impl->context](HttpRequest& head) {
    return admit(*context, head);
  };
  impl->http =
      TRY(HttpServer::listen(options.host, options.port, std::move(options.limits),
                             [context = &impl->context](HttpRequest request, HttpReply reply) {
                               route(*context, std::move(request), reply);
                             }));
  control->set_port(impl->http->port());
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() = default;

uint16_t Server::port() const {
  return impl_->http->port();
}
Result<std::string> Server::make_page_path() {
  auto code = impl_->context.access().make_page_code();
  if (!code.ok()) return Error{ErrorCode::kInternal, code.error().message};
  return std::string(kPagePrefix) + code.value();
}
void Server::run() {
  impl_->http->run();
}
// Event streams have no end of their own for which a stop could wait.
void Server::stop() {
  impl_->context.events().close();
  impl_->http->stop();
}
void Server::drain(std::chrono::milliseconds limit) {
  impl_->context.events().close();
  impl_->http->drain(limit);
}
void Server::stop_now() {
  impl_->http->stop_now();
}

}  // namespace lockstep
