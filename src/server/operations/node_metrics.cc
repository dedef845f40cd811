#include "server/operations/node_metrics.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "server/generation/api_context.h"

namespace lockstep {
namespace {

constexpr std::pair<RequestOutcome, std::string_view> kOutcomes[] = {
    {RequestOutcome::kEnded, "ended"},
    {RequestOutcome::kFailed, "failed"},
    {RequestOutcome::kCancelled, "cancelled"}};

// Escapes a label's value: names may contain anything.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out;
}

std::string label(std::string_view key, std::string_view value) {
  return fmt::format("{}=\"{}\"", key, escaped(value));
}

class MetricsText {
 public:
  void head(std::string_view name, std::string_view type, std::string_view meaning) {
    add("# HELP {0} {1}\n# TYPE {0} {2}\n", name, meaning, type);
  }
  template <class Value>
  void value(std::string_view name, const std::string& labels, Value value) {
    if (labels.empty()) {
      add("{} {}\n", name, value);
    } else {
      add("{}{{{}}} {}\n", name, labels, value);
    }
  }
  void histogram(std::string_view name, const std::string& labels, const SecondsHistogram& seen) {
    uint64_t count = 0;
    for (size_t i = 0; i < seen.counts.size(); ++i) {
      count += seen.counts[i];
      const std::string bound = i < SecondsHistogram::kBounds.size()
                                    ? fmt::format("{}", SecondsHistogram::kBounds[i])
                                    : "+Inf";
      add("{}_bucket{{{},le=\"{}\"}} {}\n", name, labels, bound, count);
    }
    add("{}_sum{{{}}} {}\n{}_count{{{}}} {}\n", name, labels, seen.sum, name, labels, count);
  }
  std::string take() { return std::move(out_); }

 private:
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }
  std::string out_;
};

void add_requests(MetricsText& text, const std::map<std::string, ModelRequests>& models) {
  text.head("lockstep_requests_total", "counter", "Requests for a model that ended.");
  for (const auto& [name, model] : models) {
    for (const auto& [outcome, word] : kOutcomes) {
      text.value("lockstep_requests_total", label("model", name) + "," + label("outcome", word),
                 model.outcomes[static_cast<size_t>(outcome)]);
    }
  }
  const auto counter = [&](std::string_view name, std::string_view meaning,
                           uint64_t ModelRequests::*count) {
    text.head(name, "counter", meaning);
    for (const auto& [model, requests] : models) {
      text.value(name, label("model", model), requests.*count);
    }
  };
  counter("lockstep_prompt_tokens_total", "Tokens of prompts that were accepted.",
          &ModelRequests::prompt_tokens);
  counter("lockstep_cached_prompt_tokens_total", "Tokens of prompts whose state was cached.",
          &ModelRequests::cached_tokens);
  counter("lockstep_generated_tokens_total", "Tokens that were generated.",
          &ModelRequests::generated_tokens);
  const auto gauge = [&](std::string_view name, std::string_view meaning,
                         int64_t ModelRequests::*count) {
    text.head(name, "gauge", meaning);
    for (const auto& [model, requests] : models) {
      text.value(name, label("model", model), requests.*count);
    }
  };
  gauge("lockstep_waiting_answers", "Answers whose prompt is queued or being read.",
        &ModelRequests::waiting);
  gauge("lockstep_decoding_answers", "Answers being generated for this node's clients: the batch.",
        &ModelRequests::decoding);
  const auto histogram = [&](std::string_view name, std::string_view meaning,
                             SecondsHistogram ModelRequests::*seen) {
    text.head(name, "histogram", meaning);
    for (const auto& [model, requests] : models) {
      text.histogram(name, label("model", model), requests.*seen);
    }
  };
  histogram("lockstep_time_to_first_token_seconds",
            "From the arrival of a request to its first token.", &ModelRequests::first_token);
  histogram("lockstep_inter_token_latency_seconds", "Between two tokens of a request.",
            &ModelRequests::next_token);
  histogram("lockstep_request_duration_seconds", "From the arrival of a request to its end.",
            &ModelRequests::request);
}

void add_models(MetricsText& text, const std::vector<ModelStatus>& models) {
  const auto each = [&](std::string_view name, std::string_view type, std::string_view meaning,
                        uint64_t (*value)(const ModelStatus&)) {
    text.head(name, type, meaning);
    for (const ModelStatus& model : models) {
      text.value(name, label("model", model.name), value(model));
    }
  };
  each(
      "lockstep_model_ready", "gauge", "Whether the model is ready.",
      [](const ModelStatus& model) { return uint64_t{model.state == ModelStatus::State::kReady}; });
  each("lockstep_model_running_requests", "gauge", "Requests that have not ended.",
       [](const ModelStatus& model) { return static_cast<uint64_t>(model.running); });
  each("lockstep_model_restarts_total", "counter", "Times the group of ranks was formed again.",
       [](const ModelStatus& model) { return static_cast<uint64_t>(model.restarts); });
  each("lockstep_model_late_frames_total", "counter",
       "Messages and frames of earlier epochs that arrived late and were dropped.",
       [](const ModelStatus& model) { return model.late_calls + model.late_frames; });
}

// Counts of models whose group is led from this node.
template <class Counts>
struct CountsText {
  MetricsText& text;
  const std::vector<ModelStatus>& models;
  std::optional<Counts> ModelStatus::*counts;

  void add(std::string_view name, std::string_view type, std::string_view meaning,
           uint64_t Counts::*count) const {
    text.head(name, type, meaning);
    for (const ModelStatus& model : models) {
      if (model.*counts) text.value(name, label("model", model.name), (*(model.*counts)).*count);
    }
  }
};

void add_pages(MetricsText& text, const std::vector<ModelStatus>& models) {
  const CountsText<PageStoreCounts> counts{text, models, &ModelStatus::pages};
  counts.add("lockstep_page_store_bytes", "gauge",
             "Bytes of pages of state on the disk of rank 0, of all models.",
             &PageStoreCounts::bytes);
  counts.add("lockstep_page_store_pages", "gauge", "Pages of the model there that rank 0 can read.",
             &PageStoreCounts::pages);
  counts.add("lockstep_page_store_saved_total", "counter", "Pages that its process has written.",
             &PageStoreCounts::saved);
  counts.add("lockstep_page_store_loaded_total", "counter", "Pages that its process has read.",
             &PageStoreCounts::loaded);
  counts.add("lockstep_page_store_dropped_total", "counter",
             "Pages that could not be written, or were found broken.", &PageStoreCounts::dropped);
}

void add_drafts(MetricsText& text, const std::vector<ModelStatus>& models) {
  const CountsText<DraftCounts> counts{text, models, &ModelStatus::drafts};
  counts.add("lockstep_draft_steps_total", "counter",
             "Steps for which the model's draft layer or a draft model guessed tokens.",
             &DraftCounts::steps);
  counts.add("lockstep_draft_guesses_total", "counter", "Tokens that it guessed.",
             &DraftCounts::guesses);
  counts.add("lockstep_draft_right_total", "counter", "Those that were right.",
             &DraftCounts::right);
}

void add_streams(MetricsText& text, const StreamFigures& streams) {
  const auto one = [&](std::string_view name, std::string_view type, std::string_view meaning,
                       uint64_t value) {
    text.head(name, type, meaning);
    text.value(name, "", value);
  };
  one("lockstep_kept_streams", "gauge", "Streams that outlive their readers, running or ended.",
      streams.streams);
  one("lockstep_kept_stream_readers", "gauge", "Clients that read them.", streams.readers);
  one("lockstep_kept_stream_bytes", "gauge", "Bytes of their events.", streams.bytes);
  one("lockstep_kept_streams_resumed_total", "counter", "Readers that came later.",
      streams.resumed);
  one("lockstep_kept_streams_abandoned_total", "counter",
      "Answers that ended because nobody read their stream.", streams.abandoned);
  one("lockstep_kept_streams_full_total", "counter",
      "Answers that ended because their stream was full.", streams.overfull);
}

void add_cluster_metrics(MetricsText& text, const ClusterReport& cluster) {
  std::map<std::string, int> states{{"alive", 0}};
  for (const ClusterNodeReport& node : cluster.nodes) ++states[node.state];
  text.head("lockstep_cluster_nodes", "gauge", "Nodes of the cluster, as this node sees them.");
  for (const auto& [state, count] : states) {
    text.value("lockstep_cluster_nodes", label("state", state), count);
  }
  text.head("lockstep_cluster_strangers_refused_total", "counter",
            "Connections of nodes that are not of this cluster.");
  text.value("lockstep_cluster_strangers_refused_total", "", cluster.strangers_refused);
  const auto self = std::find_if(cluster.nodes.begin(), cluster.nodes.end(),
                                 [](const ClusterNodeReport& node) { return node.is_self; });
  if (self == cluster.nodes.end()) return;
  text.head("lockstep_node_memory_budget_bytes", "gauge", "Memory that models may use here.");
  text.value("lockstep_node_memory_budget_bytes", "", self->budget_bytes);
  text.head("lockstep_node_memory_promised_bytes", "gauge", "Memory that is promised to models.");
  text.value("lockstep_node_memory_promised_bytes", "", self->promised_bytes);
}

}  // namespace

std::string node_metrics(const NodeFigures& figures) {
  MetricsText text;
  text.head("lockstep_build_info", "gauge", "The version of this lockstep.");
  text.value("lockstep_build_info", label("version", figures.version), 1);
  if (figures.power_w) {
    text.head("lockstep_node_power_watts", "gauge",
              "Mean power of processors and memory over the last seconds.");
    text.value("lockstep_node_power_watts", "", *figures.power_w);
  }
  text.head("lockstep_requests_waiting_to_be_read", "gauge",
            "Requests waiting for a thread that reads them.");
  text.value("lockstep_requests_waiting_to_be_read", "", figures.waiting_to_be_read);
  text.head("lockstep_oldest_request_read_seconds", "gauge",
            "How long the longest current reading of a request has taken; 0 if none.");
  text.value("lockstep_oldest_request_read_seconds", "", figures.oldest_read_s);
  text.head("lockstep_event_streams", "gauge", "Open streams of GET /cluster/events.");
  text.value("lockstep_event_streams", "", figures.event_streams);
  add_requests(text, figures.requests);
  add_streams(text, figures.streams);
  add_models(text, figures.models);
  add_pages(text, figures.models);
  add_drafts(text, figures.models);
  if (figures.cluster) add_cluster_metrics(text, *figures.cluster);
  return text.take();
}

HttpResponse serve_metrics(const ApiContext& context) {
  NodeFigures figures{.version = context.version(),
                      .power_w = context.power_w(),
                      .requests = context.metrics().models(),
                      .models = {},
                      .waiting_to_be_read = context.waiting_to_be_read(),
                      .oldest_read_s = std::chrono::duration<double>(context.oldest_busy()).count(),
                      .event_streams = context.events().stream_count(),
                      .streams = context.streams().figures(),
                      .cluster = {}};
  for (const auto& model : context.models()) figures.models.push_back(model->status());
  if (context.cluster() != nullptr) figures.cluster = context.cluster()->report();
  return {200, "text/plain; version=0.0.4; charset=utf-8", node_metrics(figures), {}};
}

}  // namespace lockstep
