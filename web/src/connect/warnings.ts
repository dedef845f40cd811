// Why the settings that are shown would not work, or less safely than one may think; each with what to do.
import { count } from "../lib/format";
import type { Client } from "./clients";
import { isLoopback, type Target } from "./target";

export interface Warning { id: string; text: string; command?: string }

const AGENT_CONTEXT = 32_768; // less than this, and a coding agent's instructions and a few files fill it

export function addressWarnings(target: Target): Warning[] {
  const found: Warning[] = [];
  if (isLoopback(target.origin)) {
    found.push({ id: "loopback", command: "lockstep key add phone\nlockstep serve --host '*'",
      text: "This address works only on the node's own machine, and not in a container. For other machines and phones, make a key, " +
        "let the node listen on its network addresses, and put the machine's name or address in the field above." });
  } else if (!target.keysNeeded) {
    found.push({ id: "open", command: "lockstep key add NAME",
      text: "This node has no keys (serve --open): everybody who reaches the address may use the models. The first key ends that." });
  }
  if (target.keysNeeded && !target.key) {
    found.push({ id: "key", command: "lockstep key add NAME",
      text: "This node wants a key. Make one on its machine and put it in the field above; it stays in this tab and is not stored." });
  }
  if (target.model === "") found.push({ id: "model", text: "No model is loaded, so there is nothing to connect to. Load one in Models." });
  return found;
}

export function clientWarnings(client: Client, target: Target): Warning[] {
  const found: Warning[] = [];
  if (!client.isAgent || target.model === "") return found;
  if (target.hasTools === false) {
    found.push({ id: "tools", text: `${target.model} has no chat template that takes tools, and ${client.name} works by calling tools. ` +
      "Load a model that was trained for them (its name usually says instruct, coder or it)." });
  }
  const context = target.context;
  if (context === undefined || context >= AGENT_CONTEXT) return found;
  const command = `lockstep load MODEL --context ${AGENT_CONTEXT}`;
  if (client.firstRequest !== undefined && context < client.firstRequest) {
    found.push({ id: "context", command, text: `${client.name} begins with some ${count(client.firstRequest)} tokens of instructions, ` +
      `and ${target.model} is loaded with a context of ${count(context)}: its first request will be refused.` });
  } else {
    found.push({ id: "context", command, text: `${target.model} is loaded with a context of ${count(context)} tokens. Coding agents need ` +
      `${count(AGENT_CONTEXT)} and more for their instructions and the files that they read.` });
  }
  return found;
}
