#include "cli/client/model_lines.h"

#include <fmt/core.h>

#include <algorithm>

#include "cli/client/cluster_text.h"
#include "cli/client/node_client.h"
#include "cli/text/output.h"

namespace lockstep {
namespace {

// The memory that its ranks hold, or are to hold.
std::string size_text(const Json& model) {
  int64_t bytes = 0;
  for (const Json& part : list_in(model, "placement")) bytes += number_in(part, "bytes");
  if (bytes == 0) {
    for (const Json& rank : list_in(model, "ranks")) {
      bytes += number_in(rank, "weight_bytes") + number_in(rank, "state_bytes");
    }
  }
  return bytes > 0 ? bytes_text(static_cast<uint64_t>(bytes)) : "-";
}

std::string where_text(const Json& model) {
  const std::string nodes = placed_on(model);
  const size_t ranks = std::max(list_in(model, "ranks").size(), list_in(model, "placement").size());
  if (nodes.empty()) return ranks > 0 ? counted(ranks, "rank") + " here" : "-";
  return fmt::format("{} on {}", counted(ranks, "rank"), nodes);
}

int64_t running_of(const Json& model) {
  int64_t running = 0;
  for (const Json& group : list_in(model, "groups")) running += number_in(group, "running");
  return std::max(running, number_in(model, "running"));
}

}  // namespace

std::vector<std::string> model_lines(const Json& status) {
  const auto models = list_in(status, "models");
  std::vector<std::string> lines;
  if (models.empty()) return lines;
  size_t width = 5;
  for (const Json& model : models) width = std::max(width, text_in(model, "name").size());
  const auto line = [&](std::string_view name, std::string_view state, std::string_view size,
                        std::string_view context, std::string_view running,
                        std::string_view where) {
    lines.push_back(fmt::format("{:<{}}  {:<10}  {:>10}  {:>8}  {:>7}  {}", name, width, state,
                                size, context, running, where));
  };
  line("MODEL", "STATE", "MEMORY", "CONTEXT", "RUNNING", "WHERE");
  for (const Json& model : models) {
    const int64_t context = number_in(model, "context");
    line(text_in(model, "name"), state_text(model), size_text(model),
         context > 0 ? std::to_string(context) : "-", std::to_string(running_of(model)),
         where_text(model));
  }
  return lines;
}

}  // namespace lockstep
