// The parts of a client's settings: address of the node, model, key.

export interface Target {
  origin: string; // "http://192.168.1.20:8600"
  model: string;
  key: string; // what the person typed; empty: none
  keysNeeded: boolean;
  context?: number; // positions of a sequence
  hasTools?: boolean; // whether the model's template takes tools; absent: not known
}

const KEY_PLACE = "YOUR_KEY";
const NO_KEY = "none"; // for clients that insist on one: a node without keys ignores it

export const keyText = ({ key, keysNeeded }: Target): string => key || (keysNeeded ? KEY_PLACE : NO_KEY);
export const openAiBase = ({ origin }: Target): string => `${origin}/v1`;

// "http://box:8600" from what somebody typed ("box:8600", "http://box:8600/v1/"); undefined if it is no address.
export function originOf(text: string): string | undefined {
  const words = text.trim();
  if (words === "" || /\s/.test(words)) return undefined;
  try {
    const url = new URL(/^https?:\/\//i.test(words) ? words : `http://${words}`);
    return url.hostname === "" ? undefined : url.origin;
  } catch {
    return undefined;
  }
}

export function isLoopback(origin: string): boolean {
  const host = new URL(origin).hostname;
  return host === "localhost" || host.endsWith(".localhost") || host === "[::1]" || /^127\./.test(host);
}

// The same text as one word of a shell, between double quotes (JSON, TOML, YAML, Python, JavaScript).
export const shellWord = (text: string): string => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
export const quoted = (text: string): string => JSON.stringify(text);
