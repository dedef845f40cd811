#include "server/page/plain_page.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/byte_text.h"
#include "base/crypto/hasher.h"
#include "base/hex.h"

namespace lockstep {
namespace {

constexpr size_t kHashDigits = 32;  // as tools/embed_page.py writes

// STYLE and SCRIPT are replaced by the addresses of the files below.
constexpr std::string_view kPage = R"html(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>lockstep</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="STYLE">
<script type="module" src="SCRIPT"></script>
</head>
<body>
<h1>lockstep</h1>
<p>This is the plain page: the program was built without Node, which compiles the real one with
chat, cluster and models. To get it, run <code>make page</code> where lockstep was built, or
install the .deb package.</p>
<h2>Models</h2>
<ul id="models"><li>Asking this node ...</li></ul>
<h2>Nodes</h2>
<ul id="nodes"></ul>
<p id="note" role="status"></p>
<p><code>lockstep run</code>, <code>lockstep status</code> and clients of OpenAI's API (this
address, then <code>/v1</code>) need no page.</p>
</body>
</html>
)html";

constexpr std::string_view kStyle = R"css(:root { color-scheme: light dark; }
body { max-width: 44rem; margin: 3rem auto; padding: 0 1rem; font: 1rem/1.5 system-ui, sans-serif; }
li { overflow-wrap: anywhere; }
)css";

// Texts of models and nodes enter the page only as text.
constexpr std::string_view kScript = R"js(const by = (id) => document.getElementById(id);
const pause_ms = 2000, patience_ms = 5000;

function list(id, lines) {
  by(id).replaceChildren(...lines.map((text) => {
    const item = document.createElement("li");
    item.textContent = text;
    return item;
  }));
}
function modelLine(model) {
  const state = model.phase && model.phase !== "ready" ? model.phase : model.state;
  const parts = [`${model.name}: ${state}`, model.sentence, model.last_error];
  return parts.filter((part) => part).join("; ");
}
function nodeLine(node) {
  return `${node.name || node.id}: ${node.state || "alive"}${node.note ? "; " + node.note : ""}`;
}
function pinLine(pin) {
  return `"${pin.name}" (${pin.address}) asks to join: if it is yours, type ${pin.pin} there`;
}
function show(status) {
  list("models", status.models.length ? status.models.map(modelLine) : ["No model is loaded."]);
  list("nodes", [...(status.nodes || []).map(nodeLine), ...(status.pins || []).map(pinLine)]);
}
async function look() {
  try {
    const answer = await fetch("/cluster/status", { signal: AbortSignal.timeout(patience_ms) });
    const said = await answer.json();
    if (answer.ok) show(said);
    else list("models", [said.error ? said.error.message : `this node answers ${answer.status}`]);
    by("note").textContent = "";
  } catch {
    by("note").textContent = "This node does not answer.";
  }
  setTimeout(look, pause_ms);
}
look();
)js";

std::string short_hash(std::string_view text) {
  return to_hex(sha256(bytes_of(text))).substr(0, kHashDigits);
}

struct PlainPage {
  const std::string style_hash = short_hash(kStyle), script_hash = short_hash(kScript);
  const std::string style_path = "/assets/plain." + style_hash + ".css";
  const std::string script_path = "/assets/plain." + script_hash + ".js";
  const std::string page = with_addresses();
  const std::string page_hash = short_hash(page);
  const std::array<PageFile, 3> files = {{
      {"/", "text/html; charset=utf-8", page_hash, page, ""},
      {style_path, "text/css; charset=utf-8", style_hash, kStyle, ""},
      {script_path, "text/javascript; charset=utf-8", script_hash, kScript, ""},
  }};

  std::string with_addresses() const {
    std::string text(kPage);
    for (const auto& [word, path] : {std::pair("STYLE", &style_path), {"SCRIPT", &script_path}}) {
      text.replace(text.find(word), std::string_view(word).size(), *path);
    }
    return text;
  }
};

}  // namespace

PageFiles plain_page() {
  static const PlainPage page;
  return page.files;
}

}  // namespace lockstep
