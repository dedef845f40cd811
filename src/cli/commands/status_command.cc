// `lockstep status`: the state of the running node on this machine: its cluster, the models, their
// ranks and the links between them.
#include <fmt/core.h>

#include <memory>
#include <span>

#include "cli/client/cluster_text.h"
#include "cli/client/node_client.h"
#include "cli/commands/commands.h"
#include "cli/text/output.h"

namespace lockstep {
namespace {

struct StatusFlags {
  NodeFlags node;
  bool json = false;
};

std::string bytes(const Json& object, std::string_view key) {
  return bytes_text(static_cast<uint64_t>(number_in(object, key)));
}

void print_rank_status(std::span<const Json> ranks) {
  if (ranks.empty()) return;
  print_line("  rank      pid     weights        read       state  device");
  for (const Json& rank : ranks) {
    print_line(fmt::format("  {:>4} {:>8} {:>11} {:>11} {:>11}  {}", number_in(rank, "rank"),
                           number_in(rank, "pid"), bytes(rank, "weight_bytes"),
                           bytes(rank, "read_bytes"), bytes(rank, "state_bytes"),
                           text_in(rank, "device")));
  }
}

std::string path_text(const Json& link) {
  std::string path = text_in(link, "path");
  if (const int64_t rails = number_in(link, "rails"); rails > 1)
    path += fmt::format(" x {}", rails);
  const int64_t on_tcp = number_in(link, "tcp_rails");
  return on_tcp > 0 ? path + fmt::format(" ({} on tcp)", on_tcp) : path;
}

// The addresses of a link between machines.
std::string ends_text(const Json& link) {
  const std::string a = text_in(link, "a_host"), b = text_in(link, "b_host");
  if (a.empty() || a == "::1" || a.starts_with("127.")) return "";
  const std::string device = text_in(link, "device");
  return fmt::format("{} - {}{}", a, b, device.empty() ? "" : ", " + device);
}

void print_links(std::span<const Json> links) {
  if (links.empty()) return;
  print_line("  link     by          encrypted    64 B p50     bandwidth");
  for (const Json& link : links) {
    const double latency_us = real_in(link, "p50_us"), gbit_s = real_in(link, "gbit_s");
    print_line(fmt::format("  {:>2} - {:<3} {:<11} {:<9} {:>11} {:>13}", number_in(link, "a"),
                           number_in(link, "b"), path_text(link),
                           flag_in(link, "encrypted") ? "yes" : "no",
                           latency_us > 0 ? fmt::format("{:.2f} us", latency_us) : "-",
                           gbit_s > 0 ? fmt::format("{:.3g} Gbit/s", gbit_s) : "-"));
    const std::string reason = text_in(link, "reason");
    if (!reason.empty()) print_line(fmt::format("           no RDMA: {}", reason));
    const std::string ends = ends_text(link), note = text_in(link, "network_note");
    if (!ends.empty()) print_line("           " + ends);
    if (!note.empty()) print_line(fmt::format("           no data network: {}", note));
  }
}

void print_model_status(const Json& model) {
  print_line(fmt::format("\n{}: {}", text_in(model, "name"), state_text(model)));
  for (const std::string& line : placement_lines(model)) print_line("  " + line);
  if (const std::string disk = disk_text(model); !disk.empty()) print_line("  " + disk);
  if (list_in(model, "ranks").empty() && find(model, "phase") != nullptr) return;  // elsewhere
  const auto threads = static_cast<uint64_t>(number_in(model, "threads"));
  print_line(fmt::format("  {}, {}, {}link {}, context {}, {} running",
                         counted(list_in(model, "ranks").size(), "rank"),
                         counted(static_cast<uint64_t>(number_in(model, "stages")), "stage"),
                         // 0: chosen by each machine
                         threads > 0 ? fmt::format("{} each, ", counted(threads, "thread")) : "",
                         text_in(model, "link"), number_in(model, "context"),
                         counted(static_cast<uint64_t>(number_in(model, "running")), "request")));
  print_line(
      fmt::format("  epoch {}, {}, {}", number_in(model, "epoch"),
                  counted(static_cast<uint64_t>(number_in(model, "restarts")), "restart"),
                  counted(static_cast<uint64_t>(number_in(model, "late_frames")), "late frame")));
  print_rank_status(list_in(model, "ranks"));
  print_links(list_in(model, "links"));
  const std::string error = text_in(model, "last_error");
  if (!error.empty()) print_line(fmt::format("  last error: {}", error));
}

int status(const StatusFlags& flags) {
  const auto said = ask_node(flags.node, "/cluster/status");
  if (!said.ok()) return fail({ErrorCode::kPeerLost, said.error().message});
  if (flags.json) {
    print_json(said.value());
    return 0;
  }
  const double power_w = real_in(said.value(), "power_w");
  print_line(fmt::format("lockstep {} on port {}{}", text_in(said.value(), "version"),
                         flags.node.port, power_w > 0 ? fmt::format(", {:.0f} W", power_w) : ""));
  for (const std::string& line : cluster_lines(said.value())) print_line(line);
  const auto models = list_in(said.value(), "models");
  if (models.empty()) print_line("no model is loaded");
  for (const Json& model : models) print_model_status(model);
  return 0;
}

}  // namespace

void add_status_command(CLI::App& app, Command& chosen) {
  auto flags = std::make_shared<StatusFlags>();
  CLI::App* command = app.add_subcommand(
      "status", "show what a running node and its cluster do: nodes, models, memory, links");
  add_node_flags(*command, flags->node);
  command->add_flag("--json", flags->json, "one JSON value");
  command->callback([flags, &chosen] { chosen = [flags] { return status(*flags); }; });
}

}  // namespace lockstep
