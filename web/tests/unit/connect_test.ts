import assert from "node:assert/strict";
import test from "node:test";
import { CLIENTS } from "../../src/connect/clients";
import { isLoopback, originOf, shellWord, type Target } from "../../src/connect/target";
import { addressWarnings, clientWarnings } from "../../src/connect/warnings";

const HERE: Target = { origin: "http://localhost:8600", model: "qwen3-4b", key: "", keysNeeded: false, context: 40_960, hasTools: true };
const textOf = (id: string, target: Target): string =>
  CLIENTS.find((client) => client.id === id)!.snippets(target).map(({ text }) => text).join("\n");

test("an address is read as people type it", () => {
  assert.equal(originOf("box:8600"), "http://box:8600");
  assert.equal(originOf(" http://box:8600/v1/ "), "http://box:8600");
  assert.equal(originOf("https://llm.example"), "https://llm.example");
  for (const wrong of ["", "two words", "http://", "http://:8600"]) assert.equal(originOf(wrong), undefined, wrong);
  for (const address of ["http://localhost:1", "http://127.0.0.9", "http://[::1]:8600"]) assert.ok(isLoopback(address), address);
  for (const address of ["http://box:8600", "http://10.0.0.1"]) assert.ok(!isLoopback(address), address);
});

test("every client has address, model and key in its settings", () => {
  const target = { ...HERE, origin: "http://box:9000", key: "lk-secret", keysNeeded: true };
  for (const client of CLIENTS) {
    const shown = client.snippets(target).map(({ text, note }) => `${text}\n${note ?? ""}`).join("\n");
    assert.match(shown, /http:\/\/box:9000/, client.name);
    if (!["open-webui", "xcode"].includes(client.id)) assert.match(shown, /qwen3-4b/, client.name);
    if (client.id !== "ollama") assert.match(shown, /lk-secret/, client.name);
  }
});

test("files of settings are valid and keep every name as it is", () => {
  const target = { ...HERE, model: 'odd "name" \\ and \'quotes\'' };
  const codex = textOf("codex", target);
  assert.ok(codex.includes('model = "odd \\"name\\" \\\\ and \'quotes\'"'));
  const file = (id: string, title: RegExp): any =>
    JSON.parse(CLIENTS.find((client) => client.id === id)!.snippets(target).find((snippet) => title.test(snippet.title))!.text);
  assert.ok(target.model in file("opencode", /opencode.json/).provider.lockstep.models);
  assert.equal(file("zed", /settings/).language_models.ollama.available_models[0].name, target.model);
  assert.equal(file("qwen-code", /settings/).modelProviders.openai[0].id, target.model);
});

test("a name is one word of the shell", () => {
  assert.equal(shellWord("org/name-1.5"), "org/name-1.5");
  assert.equal(shellWord("it's; rm"), "'it'\\''s; rm'");
});

test("the base address of Anthropic's clients has no /v1, that of OpenAI's has", () => {
  assert.match(textOf("claude-code", HERE), /ANTHROPIC_BASE_URL=http:\/\/localhost:8600\n/);
  assert.match(textOf("codex", HERE), /base_url = "http:\/\/localhost:8600\/v1"/);
  assert.match(textOf("claude-code", HERE), /lockstep launch claude --model qwen3-4b/);
});

const ids = (list: { id: string }[]): string => list.map(({ id }) => id).join(" ");

test("warnings say what will not work", () => {
  assert.equal(ids(addressWarnings(HERE)), "loopback");
  assert.equal(ids(addressWarnings({ ...HERE, origin: "http://box:8600" })), "open");
  assert.equal(ids(addressWarnings({ ...HERE, origin: "http://box:8600", keysNeeded: true })), "key");
  assert.equal(ids(addressWarnings({ ...HERE, origin: "http://box:8600", keysNeeded: true, key: "lk-1" })), "");
  assert.equal(ids(addressWarnings({ ...HERE, model: "" })), "loopback model");
  const agent = CLIENTS.find(({ id }) => id === "qwen-code")!;
  assert.equal(ids(clientWarnings(agent, HERE)), "");
  assert.equal(ids(clientWarnings(agent, { ...HERE, hasTools: false, context: 512 })), "tools context");
  assert.match(clientWarnings(agent, { ...HERE, context: 512 })[0].text, /will be refused/);
  assert.match(clientWarnings(agent, { ...HERE, context: 24_000 })[0].text, /need 32,768/);
  assert.equal(ids(clientWarnings(CLIENTS.find(({ id }) => id === "curl")!, { ...HERE, context: 512 })), "");
});
