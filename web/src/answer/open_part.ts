// The part of a growing list or table that nothing can change any more. The rest is read as a list or table of its own, after `head`,
// and joined to it.
import type { Token, Tokens } from "marked";
import { OPEN_PARTS } from "./limits";

export interface OpenPart {
  token: Tokens.List | Tokens.Table; // with the finished items or rows only
  raw: string; // its source
  length: number; // of `raw`
  head: string; // what the rest needs before it to be read as the same block
}

// Undefined where too little is finished.
export function openPart(token: Token): OpenPart | undefined {
  if (token.type === "list") return openList(token as Tokens.List);
  return token.type === "table" ? openTable(token as Tokens.Table) : undefined;
}

function openList(list: Tokens.List): OpenPart | undefined {
  const items = list.items.slice(0, -OPEN_PARTS);
  const isLoose = items.some(hasBlankLine);
  // In a loose list the lines of all items are paragraphs. If only the last items make it loose, that may yet change.
  if (items.length === 0 || list.loose !== isLoose) return undefined;
  const raw = items.map((item) => item.raw).join("");
  return { token: { ...list, items, raw }, raw, length: raw.length, head: "" };
}

const blankLines = new WeakMap<Tokens.ListItem, boolean>(); // of items that were looked at before

// Whether the item has a blank line inside, or between itself and the next item, as marked's Tokenizer.list decides it.
function hasBlankLine(item: Tokens.ListItem): boolean {
  const known = blankLines.get(item);
  if (known !== undefined) return known;
  const found = /\n[ \t]*\n[ \t]*$/.test(item.raw) || item.tokens.some((token) => token.type === "space" && /\n.*\n/.test(token.raw));
  blankLines.set(item, found);
  return found;
}

function openTable(table: Tokens.Table): OpenPart | undefined {
  const rows = table.rows.slice(0, -OPEN_PARTS);
  if (rows.length === 0) return undefined;
  let end = table.raw.length; // each row is a line, and one line's end may follow the last
  while (table.raw[end - 1] === "\n") end -= 1;
  for (let part = 0; part < OPEN_PARTS; ++part) end = table.raw.lastIndexOf("\n", end - 1);
  const raw = table.raw.slice(0, end + 1);
  return { token: { ...table, rows, raw }, raw, length: raw.length, head: raw.slice(0, raw.indexOf("\n", raw.indexOf("\n") + 1) + 1) };
}

// The tokens of the rest, of which the first goes on with the open part; undefined if it does not.
export function joined(open: OpenPart, tokens: Token[]): Token[] | undefined {
  const [first, ...more] = tokens;
  const raw = open.raw + (first?.raw ?? "").slice(open.head.length);
  if (open.token.type === "list" && first?.type === "list") {
    const list = first as Tokens.List;
    const loose = list.loose || open.token.items.some(hasBlankLine);
    return [{ ...open.token, items: [...open.token.items, ...list.items], loose, raw } as Token, ...more];
  }
  if (open.token.type === "table" && first?.type === "table") {
    return [{ ...open.token, rows: [...open.token.rows, ...(first as Tokens.Table).rows], raw } as Token, ...more];
  }
  return undefined;
}
