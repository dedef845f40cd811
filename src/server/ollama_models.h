// The models as Ollama's clients see them: GET /api/tags, /api/ps and /api/version, POST /api/show.
#pragma once

#include <chrono>
#include <string>

#include "net/http_server.h"

namespace lockstep {

class ApiContext;

// The release of Ollama whose API this is: clients refuse those that they think too old.
inline constexpr const char* kOllamaVersion = "0.12.6";

// Without the tag that clients put behind names, unless a model is called so.
std::string ollama_model_name(const ApiContext& context, const std::string& name);

// Whether the model stays loaded for so long (negative: for ever) if it is told to: one that is
// loaded on demand does, others stay in any case.
bool can_keep(const ApiContext& context, const std::string& model, std::chrono::milliseconds time);

void serve_ollama_version(ApiContext& context, const HttpRequest& request, const HttpReply& reply);
void serve_ollama_tags(ApiContext& context, const HttpRequest& request, const HttpReply& reply);
void serve_ollama_ps(ApiContext& context, const HttpRequest& request, const HttpReply& reply);
void serve_ollama_show(ApiContext& context, const HttpRequest& request, const HttpReply& reply);

}  // namespace lockstep
