// Real nodes for the tests of the page: `lockstep serve` with a folder of its own on free ports, ended by process id.
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

export const root = new URL("../../../", import.meta.url).pathname;
export const program = process.env.LOCKSTEP_PROGRAM ? resolve(process.env.LOCKSTEP_PROGRAM) : join(root, "build/release/lockstep");
export const STORIES = join(root, "models/stories260K");
export const SLOW = ["--ranks", "2", "--link-delay-us", "2000"]; // some 40 tokens a second, so that an answer can be met in its middle
export const PATIENCE_MS = 60_000;

// Polls until `condition` gives something else than undefined, null or false, and returns that.
export async function until(condition, what, patience = PATIENCE_MS) {
  const deadline = Date.now() + patience;
  for (;;) {
    const value = await condition();
    if (value) return value;
    if (Date.now() > deadline) throw new Error(`within ${patience / 1000} s it did not happen that ${what}`);
    await new Promise((done) => setTimeout(done, 20)); // between two looks
  }
}

export const temporary = (name) => mkdtempSync(join(tmpdir(), `lockstep-page-${name}-`));

export class Node {
  constructor(process, said, home) {
    this.process = process;
    this.home = home;
    Object.assign(this, said); // url, port, models, control_port
    this.url = `http://localhost:${this.port}`;
  }

  async get(path) {
    return (await fetch(this.url + path)).json();
  }

  status() { return this.get("/cluster/status"); }

  async model(name) {
    return (await this.status()).models.find((model) => model.name === name);
  }

  // Ends a worker of the model, as a fault would.
  async killRank(name, rank) {
    const { pid } = (await this.model(name)).ranks.find((one) => one.rank === rank);
    process.kill(pid, "SIGKILL");
    return pid;
  }

  // An address that gives one browser control, for the page at `address`.
  controlAddress(address) {
    const { url } = JSON.parse(run(["page", "--port", String(this.port), "--json"], this.home));
    return address + new URL(url).pathname;
  }

  async stop() {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return;
    const gone = new Promise((done) => this.process.once("exit", done));
    this.process.kill("SIGTERM");
    const late = setTimeout(() => this.process.kill("SIGKILL"), 20_000);
    await gone;
    clearTimeout(late);
    rmSync(this.home, { recursive: true, force: true });
  }
}

const surroundings = (home, more = {}) => ({ ...process.env, LOCKSTEP_HOME: home, HF_HOME: join(home, "hub"), HF_HUB_CACHE: "",
  HF_HUB_OFFLINE: "", HF_ENDPOINT: "http://127.0.0.1:9", LOCKSTEP_API_KEY: "", ...more });

// A command of the program with the folder of a node; its stdout. Throws with its sentence.
export function run(args, home) {
  const { status, stdout, stderr, error } = spawnSync(program, args, { env: surroundings(home), encoding: "utf8", timeout: PATIENCE_MS });
  if (error) throw error;
  if (status !== 0) throw new Error(`lockstep ${args[0]} ended with ${status}: ${stderr}`);
  return stdout;
}

// Resolves once the node has printed its address. `args` as of `lockstep serve`.
export function startNode(args, more = {}) {
  const home = temporary("node");
  const child = spawn(program, ["serve", ...args, "--port", "0", "--json"],
    { env: surroundings(home, more), stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  let log = "";
  child.stderr.on("data", (piece) => { log = (log + piece).slice(-20_000); });
  return new Promise((done, fail) => {
    const late = setTimeout(() => { child.kill("SIGKILL"); fail(new Error(`lockstep serve printed no address:\n${log}`)); }, PATIENCE_MS);
    child.once("error", fail);
    child.once("exit", (code) => { clearTimeout(late); fail(new Error(`lockstep serve ended with ${code}:\n${log}`)); });
    child.stdout.on("data", (piece) => {
      said += piece;
      if (!said.includes("\n")) return;
      clearTimeout(late);
      const node = new Node(child, JSON.parse(said.slice(0, said.indexOf("\n"))), home);
      node.log = () => log;
      done(node);
    });
  });
}

export const startAlone = (model = STORIES, more = SLOW) => startNode([model, "--alone", ...more]);
export const startMember = (args = [], more = {}) => startNode([...args, "--control-port", "0", "--no-beacon"], more);

// A second machine of the cluster of `first`; it joins with a token.
export async function startSecond(first, name, more = {}) {
  const { token } = JSON.parse(run(["cluster", "token", "--port", String(first.port), "--json"], first.home));
  const second = await startMember(["--name", name, "--join", `127.0.0.1:${first.control_port}`], { ...more, LOCKSTEP_TOKEN: token });
  await until(async () => (await first.status()).nodes.filter(({ state }) => state === "alive").length === 2, "both nodes are alive");
  return second;
}

// A checkpoint of a model that says what it was told to: words, and calls of the tools that are named (tests/clients).
export function scriptedModel(calls) {
  const folder = join(temporary("model"), "scripted");
  const script = "import json, sys; sys.path.insert(0, sys.argv[1]); from scripted_model import write_scripted_model\n" +
    "write_scripted_model(sys.argv[2], json.loads(sys.argv[3]))";
  const { status, stderr } = spawnSync("python3", ["-B", "-c", script, join(root, "tests/clients"), folder, JSON.stringify(calls)],
    { encoding: "utf8" });
  if (status !== 0) throw new Error(stderr);
  return folder;
}

// The page that a node serves. If the program does not hold it, or run_page.mjs was told to test the sources: a built page in front of it.
export async function pageOf(node) {
  const text = await (await fetch(`${node.url}/`, { headers: { accept: "text/html" } })).text();
  if (!process.env.LOCKSTEP_PAGE_SOURCES && text.includes('<div id="app">')) return { address: node.url, close() {} };
  const out = process.env.LOCKSTEP_PAGE_FOLDER;
  if (!out || !existsSync(join(out, "index.html"))) {
    throw new Error("the program does not hold the page, and LOCKSTEP_PAGE_FOLDER names no folder with a built one");
  }
  const child = spawn(process.execPath, [join(root, "web/dev.mjs"), out, "0", node.url], { stdio: ["ignore", "pipe", "inherit"] });
  const address = await new Promise((done, fail) => {
    child.once("exit", (code) => fail(new Error(`web/dev.mjs ended with ${code}`)));
    child.stdout.once("data", (line) => done(String(line).trim().replace(/\/$/, "")));
  });
  return { address, close: () => child.kill() };
}

// The same request without a page: the text that an undisturbed run gives.
export async function undisturbed(node, path, body) {
  const whole = { ...body, stream: false, stream_options: undefined };
  const answer = await (await fetch(node.url + path, { method: "POST", body: JSON.stringify(whole) })).json();
  if (answer.error) throw new Error(answer.error.message);
  return answer.choices[0].text ?? answer.choices[0].message.content;
}

