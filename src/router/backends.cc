#include "router/backends.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/log.h"

namespace lockstep {
namespace {

std::string_view id_of(const Json& model) {
  const Json* id = find(model, "id");
  return id && id->is_string() ? std::string_view(id->get_string()) : std::string_view();
}

// Parses the answer to GET /v1/models; nullopt: not a list of models.
std::optional<std::vector<Json>> read_models(const HttpAnswer& answer, size_t models_max) {
  const auto json = parse_json(answer.body);
  if (answer.status != 200 || !json.ok()) return std::nullopt;
  const Json* data = find(json.value(), "data");
  if (!data || !data->is_array()) return std::nullopt;
  std::vector<Json> models;
  for (const Json& model : data->get_array()) {
    if (!id_of(model).empty() && models.size() < models_max) models.push_back(model);
  }
  return models;
}

}  // namespace

bool Backend::has_model(std::string_view name) const {
  return name.empty() || std::any_of(models.begin(), models.end(), [&](const Json& model) {
           return is_name_of(name, id_of(model));
         });
}

Backends::Backends(EventLoop& loop, const std::vector<NetAddress>& addresses, BalanceLimits balance,
                   PollOptions poll)
    : loop_(loop), balance_(balance), poll_(poll), polls_(addresses.size()) {
  for (const NetAddress& address : addresses) {
    backends_.push_back({.address = address, .url = "http://" + address.text()});
  }
  for (size_t i = 0; i < backends_.size(); ++i) ask_health(i);
}

bool Backends::is_any_healthy() const {
  return std::any_of(backends_.begin(), backends_.end(),
                     [](const Backend& backend) { return backend.is_healthy; });
}

JsonArray Backends::models() const {
  JsonArray merged;
  const auto is_listed = [&](std::string_view id) {
    return std::any_of(merged.begin(), merged.end(),
                       [&](const Json& model) { return id_of(model) == id; });
  };
  for (const Backend& backend : backends_) {
    if (!backend.is_healthy) continue;
    for (const Json& model : backend.models) {
      if (!is_listed(id_of(model))) merged.push_back(model);
    }
  }
  return merged;
}

std::optional<size_t> Backends::choose(const RequestKey& key, std::span<const size_t> tried) {
  std::vector<BackendLoad> loads;
  for (size_t i = 0; i < backends_.size(); ++i) {
    const Backend& backend = backends_[i];
    const bool was_tried = std::find(tried.begin(), tried.end(), i) != tried.end();
    loads.push_back({.name = backend.url,
                     .may_answer = backend.is_healthy && !was_tried && backend.has_model(key.model),
                     .running = backend.running});
  }
  return choose_backend(loads, key.prefix, ticket_++, balance_);
}

void Backends::begin(size_t index) {
  ++backends_[index].running;
  ++backends_[index].request_count;
}

void Backends::end(size_t index) {
  LOCKSTEP_CHECK(backends_[index].running > 0);
  --backends_[index].running;
}

void Backends::count_failure(size_t index) {
  ++backends_[index].failure_count;
}

void Backends::mark_lost(size_t index, std::string problem) {
  Backend& backend = backends_[index];
  if (std::exchange(backend.is_healthy, false)) {
    log_warn("router: {} is left out: {}", backend.url, problem);
  }
  backend.problem = std::move(problem);
}

HttpCall Backends::call(size_t index, std::string target) const {
  const NetAddress& address = backends_[index].address;
  HttpCall call{.host = address.host,
                .port = address.port,
                .target = std::move(target),
                .timeout = poll_.timeout,
                .body_bytes_max = poll_.answer_bytes_max};
  if (!poll_.api_key.empty()) {
    call.headers.emplace_back("Authorization", "Bearer " + poll_.api_key);
  }
  return call;
}

void Backends::ask_health(size_t index) {
  polls_[index].fetch =
      Fetch::start(loop_, call(index, "/health"), [this, index](Result<HttpAnswer> answer) {
        if (!answer.ok()) return finish_poll(index, answer.error().message);
        if (answer.value().status == 200) return ask_models(index);
        finish_poll(index, fmt::format("its /health answered {}", answer.value().status));
      });
}

void Backends::ask_models(size_t index) {
  polls_[index].fetch =
      Fetch::start(loop_, call(index, "/v1/models"), [this, index](Result<HttpAnswer> answer) {
        if (!answer.ok()) return finish_poll(index, answer.error().message);
        auto models = read_models(answer.value(), poll_.models_max);
        if (!models) return finish_poll(index, "its /v1/models is not a list of models");
        backends_[index].models = std::move(*models);
        finish_poll(index, "");
      });
}

void Backends::finish_poll(size_t index, std::string problem) {
  Backend& backend = backends_[index];
  if (problem.empty()) {
    if (!std::exchange(backend.is_healthy, true)) log_info("router: {} answers", backend.url);
    backend.problem.clear();
  } else {
    mark_lost(index, std::move(problem));
  }
  polls_[index].timer = loop_.call_after(poll_.interval, [this, index] { ask_health(index); });
}

}  // namespace lockstep
