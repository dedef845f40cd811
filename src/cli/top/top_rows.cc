#include "cli/top/top_rows.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <utility>

#include "cli/client/cluster_text.h"
#include "cli/client/node_client.h"
#include "cli/client/served_model.h"
#include "cli/text/output.h"
#include "cli/text/terminal_text.h"
#include "cli/text/transfer_text.h"

namespace lockstep {
namespace {

using JsonRefs = std::vector<const Json*>;

constexpr size_t kNameColumns = 16;

const Json* with_text(std::span<const Json> list, std::string_view key, std::string_view value) {
  for (const Json& one : list) {
    if (text_in(one, key) == value) return &one;
  }
  return nullptr;
}

const Json& meters_of_node(const TopFacts& facts, const Json& node) {
  static const Json kNone = JsonObject();
  const Json* found =
      with_text(list_in(facts.cluster.meters(), "nodes"), "node", text_in(node, "id"));
  return found == nullptr ? kNone : *found;
}

const Json& meters_of_model(const TopFacts& facts, const Json& model) {
  static const Json kNone = JsonObject();
  const Json* found =
      with_text(list_in(facts.cluster.meters(), "models"), "name", text_in(model, "name"));
  return found == nullptr ? kNone : *found;
}

std::string node_name(const Json& node) {
  const bool is_nameless = text_in(node, "name").empty();
  return is_nameless && flag_in(node, "is_self") ? "this machine"
                                                 : harmless_line(name_of_node(node));
}

double number_or(const Json& object, std::string_view key, double otherwise) {
  return find(object, key) == nullptr ? otherwise : real_in(object, key);
}

// Sorted by the figure that matters most, the largest first; equal ones stay in order.
template <class Figure>
JsonRefs ordered(std::span<const Json> list, bool is_sorted, Figure figure) {
  JsonRefs refs;
  for (const Json& one : list) refs.push_back(&one);
  if (!is_sorted) return refs;
  std::stable_sort(refs.begin(), refs.end(),
                   [&](const Json* a, const Json* b) { return figure(*a) > figure(*b); });
  return refs;
}

// With its model's name, and the figures of the last second in the place of older ones.
JsonObject link_of(const TopFacts& facts, const std::string& model, const Json& link) {
  JsonObject now = link.is_object() ? link.get_object() : JsonObject();
  now["model"] = model;
  for (const Json& meters : list_in(facts.cluster.meters(), "links")) {
    if (!meters.is_object() || text_in(meters, "model") != model ||
        number_in(meters, "a") != number_in(link, "a") ||
        number_in(meters, "b") != number_in(link, "b")) {
      continue;
    }
    for (const auto& [name, value] : meters.get_object()) now[name] = value;
  }
  return now;
}

JsonRefs items_of(const TopFacts& facts, TopPane pane, bool is_sorted, JsonArray& links) {
  const Json& status = facts.cluster.status();
  switch (pane) {
    case TopPane::kMachines:
      return ordered(list_in(status, "nodes"), is_sorted, [&](const Json& node) {
        return real_in(meters_of_node(facts, node), "cpu_percent");
      });
    case TopPane::kModels:
      return ordered(list_in(status, "models"), is_sorted, [&](const Json& model) {
        return real_in(meters_of_model(facts, model), "tokens_s");
      });
    case TopPane::kRequests:
      return ordered(list_in(facts.requests, "requests"), is_sorted,
                     [](const Json& request) { return real_in(request, "age_s"); });
    case TopPane::kLinks:
      for (const Json& model : list_in(status, "models")) {
        for (const Json& link : list_in(model, "links")) {
          links.push_back(link_of(facts, text_in(model, "name"), link));
        }
      }
      return ordered({links.data(), links.size()}, is_sorted,
                     [](const Json& link) { return real_in(link, "p50_us"); });
    case TopPane::kEvents: {
      JsonRefs refs;
      const auto& happened = facts.cluster.happened();
      for (auto one = happened.rbegin(); one != happened.rend(); ++one) refs.push_back(&*one);
      return refs;
    }
  }
  return {};
}

std::string percent_text(const Json& meters) {
  const double percent = number_or(meters, "cpu_percent", -1);
  return percent < 0 ? "-" : fmt::format("{:.0f}%", percent);
}

std::string small_figure(double value, std::string_view unit) {
  return value <= 0 ? "-" : fmt::format("{:.0f}{}", value, unit);
}

std::string machine_row(const TopFacts& facts, const Json& node, TopCharset charset) {
  constexpr int kBarColumns = 8;
  const Json& meters = meters_of_node(facts, node);
  const double used = real_in(meters, "memory_used_bytes");
  const double whole = real_in(meters, "memory_bytes");
  const std::string memory =
      whole > 0 ? fmt::format("{} {:>4.0f}/{:.0f} GB",
                              bar_text(used / whole, kBarColumns, charset.has_utf8), used / 1e9,
                              whole / 1e9)
                : "-";
  std::string notes = flag_in(node, "is_coordinator") ? "coordinator" : "";
  if (flag_in(node, "is_spare")) notes += notes.empty() ? "spare" : ", spare";
  const std::string note = harmless_line(text_in(node, "note"));
  if (!note.empty()) notes += (notes.empty() ? "" : ", ") + note;
  return fmt::format("{} {:<8} {} {:>5} {:>5} {:>6}  {}",
                     fit_columns(node_name(node), kNameColumns, charset.has_utf8),
                     text_in(node, "state"), fit_columns(memory, 20, charset.has_utf8),
                     percent_text(meters), small_figure(real_in(meters, "temperature_c"), "C"),
                     small_figure(real_in(meters, "power_w"), "W"), notes);
}

std::string model_row(const TopFacts& facts, const Json& model, TopCharset charset) {
  const Json& meters = meters_of_model(facts, model);
  const std::string place = harmless_line(placed_on(model));
  const bool is_ready = is_model_ready(model);
  const double tokens_s = real_in(meters, "tokens_s");
  const std::string about =
      is_ready ? (place.empty() ? "here" : "on " + place) : model_progress(model);
  return fmt::format("{} {} {:>9} {:>4} {:>4}  {}",
                     fit_columns(harmless_line(text_in(model, "name")), 22, charset.has_utf8),
                     fit_columns(harmless_line(state_text(model)), 9, charset.has_utf8),
                     tokens_s > 0 ? fmt::format("{:.1f}", tokens_s) : "-",
                     number_in(meters, "running"), number_in(meters, "waiting"), about);
}

std::string request_row(const Json& request, TopCharset charset) {
  const double age_s = real_in(request, "age_s");
  const auto tokens = number_in(request, "tokens");
  std::string phase = harmless_line(text_in(request, "phase"));
  if (const int64_t place = number_in(request, "place"); place > 0) {
    phase += fmt::format(" {}", place);
  }
  std::string client = harmless_line(text_in(request, "client"));
  if (client.empty()) client = flag_in(request, "own") ? "own" : "-";
  return fmt::format("{} {} {:>7} {:>7} {:>7} {:>7}  {}",
                     fit_columns(harmless_line(text_in(request, "model")), 22, charset.has_utf8),
                     fit_columns(phase, 10, charset.has_utf8), number_in(request, "prompt_tokens"),
                     tokens,
                     age_s > 0 ? fmt::format("{:.1f}", static_cast<double>(tokens) / age_s) : "-",
                     duration_text(age_s), client);
}

std::string link_row(const Json& link, TopCharset charset) {
  const double p50_us = real_in(link, "p50_us"), gbit_s = real_in(link, "gbit_s");
  const auto bytes_s = static_cast<uint64_t>(std::max(real_in(link, "bytes_s"), 0.0));
  return fmt::format("{} {:>3} - {:<3} {} {:<5} {:>10} {:>12} {:>11}",
                     fit_columns(harmless_line(text_in(link, "model")), 14, charset.has_utf8),
                     number_in(link, "a"), number_in(link, "b"),
                     fit_columns(harmless_line(text_in(link, "path")), 9, charset.has_utf8),
                     flag_in(link, "encrypted") ? "TLS" : "plain",
                     p50_us > 0 ? fmt::format("{:.1f} us", p50_us) : "-",
                     gbit_s > 0 ? fmt::format("{:.3g} Gbit/s", gbit_s) : "-",
                     bytes_s > 0 ? bytes_text(bytes_s) + "/s" : "-");
}

std::string value_text(const Json& value) {
  return value.is_string() ? std::string(text_of(value.get_string())) : dump_json(value);
}

// "rank 0, pid 4711": on one line, without what is empty.
std::string members_text(const Json& json) {
  if (!json.is_object()) return value_text(json);
  std::string line;
  for (const auto& [key, value] : json.get_object()) {
    const std::string text = value.is_null() ? "" : value_text(value);
    if (text.empty()) continue;
    line += fmt::format("{}{} {}", line.empty() ? "" : ", ", std::string(key), text);
  }
  return line;
}

// Members of an object, nested ones with a dot; a line for each object of a list.
void add_members(const Json& json, const std::string& prefix, std::vector<std::string>& lines) {
  constexpr size_t kLinesMax = 200;
  for (const auto& [key, value] : json.get_object()) {
    if (lines.size() >= kLinesMax) return;
    const std::string name = prefix + std::string(key);
    if (value.is_object()) {
      add_members(value, name + ".", lines);
    } else if (value.is_array() && !value.get_array().empty() && value.get_array()[0].is_object()) {
      for (size_t i = 0; i < value.get_array().size() && lines.size() < kLinesMax; ++i) {
        lines.push_back(
            harmless_line(fmt::format("{} {}: {}", name, i, members_text(value.get_array()[i]))));
      }
    } else if (!value.is_null()) {
      const std::string text = value_text(value);
      if (!text.empty()) lines.push_back(harmless_line(fmt::format("{}: {}", name, text)));
    }
  }
}

}  // namespace

std::string_view top_pane_title(TopPane pane) {
  constexpr std::string_view kTitles[] = {"machines", "models", "requests", "links", "events"};
  return kTitles[static_cast<size_t>(pane)];
}

std::string top_pane_heading(TopPane pane) {
  switch (pane) {
    case TopPane::kMachines:
      return fmt::format("{:<16} {:<8} {:<20} {:>5} {:>5} {:>6}", "", "state", "memory", "cpu",
                         "heat", "power");
    case TopPane::kModels:
      return fmt::format("{:<22} {:<9} {:>9} {:>4} {:>4}", "", "state", "tok/s", "run", "wait");
    case TopPane::kRequests:
      return fmt::format("{:<22} {:<10} {:>7} {:>7} {:>7} {:>7}  client", "", "phase", "prompt",
                         "answer", "tok/s", "age");
    case TopPane::kLinks:
      return fmt::format("{:<14} {:<9} {:<9} {:<5} {:>10} {:>12} {:>11}", "", "ranks", "path", "",
                         "p50", "bandwidth", "traffic");
    case TopPane::kEvents:
      return "";
  }
  return "";
}

std::vector<std::string> top_rows(const TopFacts& facts, TopPane pane, bool is_sorted,
                                  TopCharset charset) {
  JsonArray links;
  std::vector<std::string> rows;
  for (const Json* item : items_of(facts, pane, is_sorted, links)) {
    switch (pane) {
      case TopPane::kMachines:
        rows.push_back(machine_row(facts, *item, charset));
        break;
      case TopPane::kModels:
        rows.push_back(model_row(facts, *item, charset));
        break;
      case TopPane::kRequests:
        rows.push_back(request_row(*item, charset));
        break;
      case TopPane::kLinks:
        rows.push_back(link_row(*item, charset));
        break;
      case TopPane::kEvents:
        rows.push_back(happening_line(*item));
        break;
    }
  }
  return rows;
}

std::vector<std::string> top_detail(const TopFacts& facts, TopPane pane, size_t row,
                                    bool is_sorted) {
  JsonArray links;
  const JsonRefs items = items_of(facts, pane, is_sorted, links);
  if (row >= items.size() || !items[row]->is_object()) return {};
  std::vector<std::string> lines;
  add_members(*items[row], "", lines);
  const Json* meters = pane == TopPane::kMachines ? &meters_of_node(facts, *items[row])
                       : pane == TopPane::kModels ? &meters_of_model(facts, *items[row])
                                                  : nullptr;
  if (meters != nullptr && meters->is_object()) add_members(*meters, "now.", lines);
  return lines;
}

std::string top_model_at(const TopFacts& facts, size_t row, bool is_sorted) {
  JsonArray links;
  const JsonRefs items = items_of(facts, TopPane::kModels, is_sorted, links);
  return row < items.size() ? text_in(*items[row], "name") : "";
}

std::string top_summary(const TopFacts& facts) {
  double watts = 0, tokens_s = 0;
  int64_t running = 0, waiting = 0;
  for (const Json& node : list_in(facts.cluster.meters(), "nodes"))
    watts += real_in(node, "power_w");
  for (const Json& model : list_in(facts.cluster.meters(), "models")) {
    tokens_s += real_in(model, "tokens_s");
    running += number_in(model, "running");
    waiting += number_in(model, "waiting");
  }
  std::string text = counted(list_in(facts.cluster.status(), "nodes").size(), "machine");
  if (watts > 0) text += fmt::format(", {:.0f} W", watts);
  return text + fmt::format(", {:.1f} tok/s, {} running, {} waiting", tokens_s, running, waiting);
}

std::string happening_line(const Json& happening) {
  const std::time_t seconds = number_in(happening, "at_ms") / 1000;
  std::tm here{};
  localtime_r(&seconds, &here);
  return fmt::format("{:02}:{:02}:{:02}  {}", here.tm_hour, here.tm_min, here.tm_sec,
                     harmless_line(text_in(happening, "sentence")));
}

}  // namespace lockstep
