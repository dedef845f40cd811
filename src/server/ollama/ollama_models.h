// The models as Ollama's clients see them: GET /api/tags, /api/ps and /api/version, POST /api/show.
#pragma once

#include <chrono>
#include <string>

#include "net/http/http_server.h"

namespace lockstep {

class ApiContext;

// The Ollama release whose API this is: clients refuse releases they consider too old.
inline constexpr const char* kOllamaVersion = "0.12.6";

// Without the tag that clients append to names, unless a model has that very name.
std::string ollama_model_name(const ApiContext& context, const std::string& name);

// Whether the model can be kept loaded for `time` (negative: forever, always possible). Only models
// loaded on demand can be unloaded after a time; others stay.
bool can_keep(const ApiContext& context, const std::string& model, std::chrono::milliseconds time);

void serve_ollama_version(ApiContext& context, const HttpRequest& request, const HttpReply& reply);
void serve_ollama_tags(ApiContext& context, const HttpRequest& request, const HttpReply& reply);
void serve_ollama_ps(ApiContext& context, const HttpRequest& request, const HttpReply& reply);
void serve_ollama_show(ApiContext& context, const HttpRequest& request, const HttpReply& reply);

}  // namespace lockstep
