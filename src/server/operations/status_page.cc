#include "server/operations/status_page.h"

#include <fmt/core.h>

#include <cstdint>
#include <random>
#include <string>

namespace lockstep {
namespace {

// Everything is inline and nothing is loaded from elsewhere; NONCE is replaced in every answer.
// Model texts enter the page only through textContent.
constexpr const char* kPage = R"html(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>lockstep</title>
<style nonce="NONCE">
:root { --back: #f6f7f9; --card: #fff; --line: #e2e5ea; --text: #16191d; --dim: #667080;
  --good: #14804a; --busy: #a15c00; --bad: #c02b2b; --bar: #3563e9; --code: #eef0f4;
  color-scheme: light dark; }
@media (prefers-color-scheme: dark) { :root { --back: #101317; --card: #181c22; --line: #2a3039;
  --text: #e8ebef; --dim: #93a0b0; --good: #43c588; --busy: #e5a13c; --bad: #f0716c;
  --bar: #6f93ff; --code: #11151a; } }
* { box-sizing: border-box; margin: 0; }
body { background: var(--back); color: var(--text); font: 15px/1.5 system-ui, sans-serif;
  min-height: 100vh; display: flex; justify-content: center; padding: 6vh 20px 40px; }
main { width: 100%; max-width: 760px; }
header { display: flex; align-items: baseline; gap: 12px; margin-bottom: 20px; }
h1 { font-size: 22px; letter-spacing: -.02em; }
h2 { font-size: 17px; overflow-wrap: anywhere; }
small, .dim, dt, th { color: var(--dim); }
small { font-size: 13px; }
.right { margin-left: auto; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 12px;
  padding: 18px 20px; margin-bottom: 16px; }
.head { display: flex; align-items: center; gap: 12px; justify-content: space-between; }
.state { font-size: 13px; font-weight: 600; white-space: nowrap; }
.state::before { content: ""; display: inline-block; width: 8px; height: 8px; margin-right: 7px;
  border-radius: 50%; background: currentColor; }
.good { color: var(--good); } .busy { color: var(--busy); } .bad { color: var(--bad); }
dl { display: flex; flex-wrap: wrap; gap: 8px 30px; margin: 14px 0 4px; }
dt { font-size: 12px; }
dd { margin: 0; font-variant-numeric: tabular-nums; }
table { width: 100%; border-collapse: collapse; margin-top: 12px; font-size: 14px;
  font-variant-numeric: tabular-nums; }
th { font-weight: 500; font-size: 12px; text-align: right; }
td { text-align: right; border-top: 1px solid var(--line); padding: 7px 0; }
th:first-child, td:first-child, th:last-child { text-align: left; }
th:last-child { padding-left: 24px; }
td.share { width: 26%; padding-left: 24px; }
.track { height: 6px; border-radius: 3px; background: var(--code); overflow: hidden; }
.track i { display: block; height: 100%; border-radius: 3px; background: var(--bar); }
.error { margin-top: 12px; color: var(--bad); font-size: 14px; overflow-wrap: anywhere; }
.pin { font: 600 26px ui-monospace, monospace; letter-spacing: .08em; }
pre { background: var(--code); border-radius: 8px; padding: 12px 14px; margin-top: 10px;
  overflow-x: auto; font: 13px/1.55 ui-monospace, monospace; }
</style>
</head>
<body>
<main>
<header>
<h1>lockstep</h1><small id="version"></small><small class="right" id="note"></small>
</header>
<div id="pins"></div>
<div id="cluster"></div>
<div id="models"><section class="card dim">Asking this node for its models ...</section></div>
<section class="card"><h2>Try it</h2><pre id="example"></pre></section>
</main>
<script nonce="NONCE">
"use strict";
const states = { ready: "good", loading: "busy", restarting: "busy",
  failed: "bad", stopped: "bad" };
const by = id => document.getElementById(id);
function make(tag, style, ...content) {
  const element = document.createElement(tag);
  if (style) element.className = style;
  element.append(...content);
  return element;
}
function bytes(count) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (count >= 1024 && unit + 1 < units.length) { count /= 1024; ++unit; }
  return (unit === 0 || count >= 100 ? count.toFixed(0) : count.toFixed(1)) + " " + units[unit];
}
function facts(pairs) {
  return make("dl", "", ...pairs.map(([name, value]) =>
    make("div", "", make("dt", "", name), make("dd", "", String(value)))));
}
function rankRow(rank, total) {
  const bar = make("i");
  bar.style.width = (total ? 100 * rank.weight_bytes / total : 0).toFixed(1) + "%";
  const share = make("td", "share", make("div", "track", bar));
  return make("tr", "", make("td", "", String(rank.rank)), make("td", "", String(rank.pid)),
    make("td", "", bytes(rank.weight_bytes)), make("td", "", bytes(rank.read_bytes)),
    make("td", "", bytes(rank.state_bytes)), share);
}
function linkRow(link) {
  const rails = link.rails > 1 ? " x " + link.rails : "";
  const onTcp = link.tcp_rails ? " (" + link.tcp_rails + " on tcp)" : "";
  return make("tr", "", make("td", "", link.a + " - " + link.b),
    make("td", "", link.path + rails + onTcp), make("td", "", link.encrypted ? "yes" : "no"),
    make("td", "", link.p50_us ? link.p50_us.toFixed(1) + " us" : ""),
    make("td", "", link.gbit_s ? link.gbit_s.toPrecision(3) + " Gbit/s" : ""),
    make("td", "share dim", link.reason));
}
function table(names, rows) {
  return make("table", "", make("tr", "", ...names.map(name => make("th", "", name))), ...rows);
}
function pinCard(pin) {
  return make("section", "card", make("h2", "", "A machine asks to join: " + pin.name),
    make("p", "pin", pin.pin.replace(/^(.{4})(?=.{4}$)/, "$1 ")),
    make("p", "dim", "If it is yours (" + pin.address + "), type this number there."));
}
function lockedCard() {
  return make("section", "card dim",
    "This browser cannot see the PINs of machines that ask to join: open the address that ",
    make("code", "", "lockstep page"), " prints on this machine.");
}
function nodeRow(node) {
  const marks = [node.is_self ? "this node" : "", node.is_coordinator ? "coordinator" : "",
    node.is_spare ? "spare" : "", node.note].filter(mark => mark).join(", ");
  const free = Math.max(0, node.budget_bytes - node.promised_bytes);
  return make("tr", "", make("td", "", node.name || node.id.slice(0, 8)),
    make("td", node.state === "alive" ? "good" : "bad", node.state),
    make("td", "", node.budget_bytes ? bytes(free) : ""),
    make("td", "", node.budget_bytes ? bytes(node.budget_bytes) : ""),
    make("td", "", node.read_bytes_s ? (node.read_bytes_s / 1e9).toFixed(0) + " GB/s" : ""),
    make("td", "share dim", marks));
}
function clusterCard(status) {
  const section = make("section", "card",
    make("div", "head", make("h2", "", "Cluster " + status.cluster),
      make("small", "", status.nodes.length + (status.nodes.length === 1 ? " node" : " nodes"))),
    table(["node", "state", "free", "for models", "reads", ""], status.nodes.map(nodeRow)));
  if (status.beacon_problem) section.append(make("p", "error", status.beacon_problem));
  return section;
}
function placed(model, group) {
  const nodes = new Map();
  for (const part of model.placement || [])
    if (!group || part.group === group.group)
      nodes.set(part.node_name, (nodes.get(part.node_name) || 0) + 1);
  return [...nodes].map(([name, ranks]) => ranks > 1 ? name + " (" + ranks + " ranks)" : name);
}
function placements(model) {
  const groups = model.groups || [];
  if (groups.length < 2)
    return placed(model).length ? [make("p", "dim", "On " + placed(model).join(", "))] : [];
  return groups.map(group => make("p", "dim", "Group " + group.group + ", " + group.phase + ", " +
    group.running + " running, on " + placed(model, group).join(", ")));
}
function card(model) {
  const isWaiting = model.phase && model.phase !== "ready";
  const state = isWaiting ? model.phase : model.state;
  const section = make("section", "card",
    make("div", "head", make("h2", "", model.name),
      make("span", "state " + (states[state] || "busy"), state)),
    facts([["ranks", model.ranks.length], ["stages", model.stages], ["link", model.link || "none"],
      ["threads per rank", model.threads], ["context", model.context + " tokens"],
      ["running", model.running], ["restarts", model.restarts],
      ["late frames", model.late_frames]]));
  section.append(...placements(model));
  if (model.sentence) section.append(make("p", "error", model.sentence));
  if (model.ranks.length) {
    const total = model.ranks.reduce((sum, rank) => sum + rank.weight_bytes, 0);
    section.append(table(["rank", "pid", "weights", "read", "state", "share"],
      model.ranks.map(rank => rankRow(rank, total))));
  }
  if (model.links.length) {
    section.append(table(["link", "by", "encrypted", "latency", "bandwidth", ""],
      model.links.map(linkRow)));
  }
  if (model.last_error) section.append(make("p", "error", "Last error: " + model.last_error));
  return section;
}
function show(status) {
  by("version").textContent = status.version;
  by("pins").replaceChildren(...(status.pins || []).map(pinCard),
    ...(status.cluster && !status.control ? [lockedCard()] : []));
  by("cluster").replaceChildren(...(status.cluster ? [clusterCard(status)] : []));
  by("models").replaceChildren(...(status.models.length ? status.models.map(card) :
    [make("section", "card dim", "No model is loaded.")]));
  const name = status.models.length ? status.models[0].name : "MODEL";
  const body = JSON.stringify({ model: name, prompt: "Once upon a time", max_tokens: 64 });
  const text = "curl " + location.origin + "/v1/completions \\\n"
    + "  -H 'Content-Type: application/json' \\\n"
    + "  -d '" + body.replaceAll("'", "'\\''") + "'";
  if (by("example").textContent !== text) by("example").textContent = text;
}
function note(text, style) {
  by("note").textContent = text;
  by("note").className = "right " + style;
}
function showRefusal(answer) {
  const reason = answer.error ? answer.error.message : "this node refuses access";
  by("models").replaceChildren(make("section", "card dim", reason + ". Or open the address that ",
    make("code", "", "lockstep page"), " prints on this machine."));
  note("locked", "bad");
}
async function poll() {
  try {
    const answer = await fetch("/cluster/status", { signal: AbortSignal.timeout(5000) });
    const said = await answer.json();
    if (answer.ok) {
      show(said);
      note("live", "good");
    } else {
      showRefusal(said);
    }
  } catch (error) {
    note("this node does not answer", "bad");
  }
  setTimeout(poll, 2000);
}
poll();
</script>
</body>
</html>
)html";

std::string random_nonce() {
  std::random_device device;
  const uint64_t high = uint64_t{device()} << 32 | device();
  const uint64_t low = uint64_t{device()} << 32 | device();
  return fmt::format("{:016x}{:016x}", high, low);
}

}  // namespace

HttpResponse status_page() {
  constexpr std::string_view kPlaceholder = "NONCE";
  const std::string nonce = random_nonce();
  std::string page = kPage;
  for (size_t at = 0; (at = page.find(kPlaceholder, at)) != std::string::npos;) {
    page.replace(at, kPlaceholder.size(), nonce);
  }
  return {200,
          "text/html; charset=utf-8",
          std::move(page),
          {{"Content-Security-Policy",
            fmt::format("default-src 'none'; style-src 'nonce-{0}'; script-src 'nonce-{0}'; "
                        "connect-src 'self'; base-uri 'none'; form-action 'none'; "
                        "frame-ancestors 'none'",
                        nonce)},
           {"X-Content-Type-Options", "nosniff"},
           {"Referrer-Policy", "no-referrer"},
           {"Cache-Control", "no-store"}}};
}

}  // namespace lockstep
