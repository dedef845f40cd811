// A node with one chat model that answers with a given text at a given speed, one event a token, for measuring the page.
import { createServer } from "node:http";

const STEP_MS = 10;
const STATUS = { version: "0", control: false, pulls: [], happened: [],
  nodes: [{ id: "0".repeat(32), name: "box", version: "0", address: "", state: "alive", note: "", is_self: true, budget_bytes: 1 << 30,
    promised_bytes: 1 << 20 }],
  models: [{ name: "teller", state: "ready", phase: "ready", restarts: 0, last_error: "", context: 65_536,
    ranks: [{ rank: 0, node: "0".repeat(32) }] }] };

// `tokens`: the text in pieces. Events go out every STEP_MS, as many as are due.
export function tellingNode(tokens, tokensPerSecond) {
  const server = createServer((from, to) => {
    const { pathname } = new URL(from.url, "http://localhost");
    from.resume();
    if (pathname === "/cluster/events") return events(to);
    if (pathname === "/v1/chat/completions") return tell(to, tokens, tokensPerSecond);
    to.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(ANSWERS[pathname] ?? {}));
  });
  return new Promise((done) => server.listen(0, "127.0.0.1", () => done(server)));
}

const ANSWERS = {
  "/v1/session": { control: false, key: false, keys_needed: false },
  "/api/show": { template: "{{ messages }}", capabilities: ["completion"], model_info: { "teller.context_length": 65_536 } },
  "/v1/messages/count_tokens": { input_tokens: 12 },
};

function events(to) {
  to.writeHead(200, { "content-type": "text/event-stream" });
  const send = (event, data) => to.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  send("snapshot", STATUS);
  const timer = setInterval(() => send("meters", { now_ms: Date.now(), links: [], nodes: [{ node: STATUS.nodes[0].id, cpu_percent: 50 }],
    models: [{ name: "teller", tokens_s: 300, running: 1, waiting: 0 }] }), 1_000);
  to.on("close", () => clearInterval(timer));
}

function tell(to, tokens, tokensPerSecond) {
  to.writeHead(200, { "content-type": "text/event-stream", "x-lockstep-stream": "measured" });
  let next = 0;
  let id = 0;
  const send = (data) => to.write(`id: ${id++}\ndata: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`);
  const chunk = (delta, finish_reason = null) => ({ id: "chatcmpl-1", object: "chat.completion.chunk", created: 0, model: "teller",
    choices: [{ index: 0, delta, finish_reason }] });
  const began = performance.now();
  const timer = setInterval(() => {
    const due = Math.min(tokens.length, Math.floor((performance.now() - began) / 1000 * tokensPerSecond));
    while (next < due) send(chunk({ content: tokens[next++] }));
    if (next < tokens.length) return;
    clearInterval(timer);
    send(chunk({}, "stop"));
    send({ ...chunk({}), choices: [], usage: { prompt_tokens: 12, completion_tokens: next },
      timings: { prompt_n: 12, prompt_ms: 5, predicted_n: next, predicted_ms: performance.now() - began } });
    send("[DONE]");
    to.end();
  }, STEP_MS);
  to.on("close", () => clearInterval(timer));
}
