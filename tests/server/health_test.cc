#include "server/operations/health.h"

#include <memory>

#include "server/generation/api_context.h"
#include "server/served.h"

namespace lockstep {
namespace {

std::unique_ptr<ApiContext> context_of(ModelServices models) {
  return std::make_unique<ApiContext>(std::make_shared<FixedModels>(std::move(models)), nullptr,
                                      ApiSettings{.version = "1",
                                                  .silence_max = std::chrono::minutes(1),
                                                  .claude_model = "",
                                                  .power = nullptr},
                                      std::move(AccessControl::open({}).value()));
}

}  // namespace

TEST_CASE("health: a node whose oldest request is stuck reports it, though its model answers") {
  const auto context = context_of({std::make_shared<FakeModel>()});
  const HttpRequest request;
  CHECK(health(*context, request).status == 200);
  CHECK(health(*context, request, kStuckAfter).status == 200);
  const HttpResponse stuck = health(*context, request, kStuckAfter + std::chrono::seconds(3));
  CHECK(stuck.status == 503);
  CHECK(stuck.body ==
        R"({"status":"stuck","reason":"reading a request has taken 63 s and does not end: )"
        R"(restart this node"})");
}

}  // namespace lockstep
