// `lockstep status`: what a running node on this machine does: its models, their ranks and the
// links between them.
#include <fmt/core.h>

#include <memory>
#include <span>

#include "cli/commands.h"
#include "cli/output.h"
#include "json/json.h"
#include "net/http_client.h"

namespace lockstep {
namespace {

struct Flags {
  int port = 8600;
  bool json = false;
};

// What a node says is shown as far as it is there: it may be of another version.
std::string text(const Json& object, std::string_view key) {
  const auto value = get_string(object, key);
  return value.ok() ? value.value().value_or("") : "";
}

int64_t number(const Json& object, std::string_view key) {
  const auto value = get_int(object, key);
  return value.ok() ? value.value().value_or(0) : 0;
}

double real(const Json& object, std::string_view key) {
  const auto value = get_double(object, key);
  return value.ok() ? value.value().value_or(0) : 0;
}

std::string bytes(const Json& object, std::string_view key) {
  return bytes_text(static_cast<uint64_t>(number(object, key)));
}

std::span<const Json> list(const Json& object, std::string_view key) {
  const Json* found = find(object, key);
  if (!found || !found->is_array()) return {};
  return {found->get_array().data(), found->get_array().size()};
}

void print_ranks(std::span<const Json> ranks) {
  if (ranks.empty()) return;
  print_line("  rank      pid     weights        read       state");
  for (const Json& rank : ranks) {
    print_line(fmt::format("  {:>4} {:>8} {:>11} {:>11} {:>11}", number(rank, "rank"),
                           number(rank, "pid"), bytes(rank, "weight_bytes"),
                           bytes(rank, "read_bytes"), bytes(rank, "state_bytes")));
  }
}

std::string path_text(const Json& link) {
  std::string path = text(link, "path");
  if (const int64_t rails = number(link, "rails"); rails > 1) path += fmt::format(" x {}", rails);
  const int64_t on_tcp = number(link, "tcp_rails");
  return on_tcp > 0 ? path + fmt::format(" ({} on tcp)", on_tcp) : path;
}

void print_links(std::span<const Json> links) {
  if (links.empty()) return;
  print_line("  link     by          encrypted    64 B p50     bandwidth");
  for (const Json& link : links) {
    const double latency_us = real(link, "p50_us"), gbit_s = real(link, "gbit_s");
    const auto encrypted = get_bool(link, "encrypted");
    const bool is_encrypted = encrypted.ok() && encrypted.value().value_or(false);
    print_line(fmt::format("  {:>2} - {:<3} {:<11} {:<9} {:>11} {:>13}", number(link, "a"),
                           number(link, "b"), path_text(link), is_encrypted ? "yes" : "no",
                           latency_us > 0 ? fmt::format("{:.2f} us", latency_us) : "-",
                           gbit_s > 0 ? fmt::format("{:.3g} Gbit/s", gbit_s) : "-"));
    const std::string reason = text(link, "reason");
    if (!reason.empty()) print_line(fmt::format("           no RDMA: {}", reason));
  }
}

void print_model(const Json& model) {
  print_line(fmt::format("\n{}: {}", text(model, "name"), text(model, "state")));
  print_line(fmt::format("  {}, {}, {} each, link {}, context {}, {} running",
                         counted(list(model, "ranks").size(), "rank"),
                         counted(static_cast<uint64_t>(number(model, "stages")), "stage"),
                         counted(static_cast<uint64_t>(number(model, "threads")), "thread"),
                         text(model, "link"), number(model, "context"),
                         counted(static_cast<uint64_t>(number(model, "running")), "request")));
  print_line(
      fmt::format("  epoch {}, {}, {}", number(model, "epoch"),
                  counted(static_cast<uint64_t>(number(model, "restarts")), "restart"),
                  counted(static_cast<uint64_t>(number(model, "late_frames")), "late frame")));
  print_ranks(list(model, "ranks"));
  print_links(list(model, "links"));
  const std::string error = text(model, "last_error");
  if (!error.empty()) print_line(fmt::format("  last error: {}", error));
}

Error no_node(const Flags& flags, const Error& error) {
  return {error.code, fmt::format("no node answers on port {} of this machine ({}); start one with "
                                  "`lockstep serve MODEL`, or name its port with --port",
                                  flags.port, error.message)};
}

Result<Json> ask(const Flags& flags) {
  const auto answer =
      call_http({.port = static_cast<uint16_t>(flags.port), .target = "/cluster/status"});
  if (!answer.ok()) return no_node(flags, answer.error());
  auto json = parse_json(answer.value().body);
  if (answer.value().status != 200 || !json.ok() || !json.value().is_object()) {
    return no_node(flags, {ErrorCode::kCorrupt, "what answers there is no node of lockstep"});
  }
  return std::move(json.value());
}

int status(const Flags& flags) {
  const auto said = ask(flags);
  if (!said.ok()) return fail({ErrorCode::kPeerLost, said.error().message});
  if (flags.json) {
    print_json(said.value());
    return 0;
  }
  const double power_w = real(said.value(), "power_w");
  print_line(fmt::format("lockstep {} on port {}{}", text(said.value(), "version"), flags.port,
                         power_w > 0 ? fmt::format(", {:.0f} W", power_w) : ""));
  const auto models = list(said.value(), "models");
  if (models.empty()) print_line("no model is loaded");
  for (const Json& model : models) print_model(model);
  return 0;
}

}  // namespace

void add_status_command(CLI::App& app, Command& chosen) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command =
      app.add_subcommand("status", "what a running node does: models, ranks, memory, links");
  command->add_option("--port", flags->port, "HTTP port of the node (default 8600)")
      ->check(CLI::Range(1, 65535));
  command->add_flag("--json", flags->json, "one JSON value");
  command->callback([flags, &chosen] { chosen = [flags] { return status(*flags); }; });
}

}  // namespace lockstep
