// The tokens of a piece of text as Inline nodes: entities decoded, addresses checked, text that turns its direction isolated.
import type { Token, Tokens } from "marked";
import { turnsDirection } from "./controls";
import { decodeEntities } from "./entities";
import { TooMuchWork, type AnswerLexer } from "./lexer";
import { PIECE_MAX } from "./limits";
import { safeHref } from "./links";
import type { Inline } from "./tree";

// Where a long text is cut: after a line, a sentence or a word, the last before PIECE_MAX. The place depends on the
// text before it alone, so it stays where it is while the text grows.
export function pieces(text: string): string[] {
  const all: string[] = [];
  let from = 0;
  while (text.length - from > PIECE_MAX) {
    const part = text.slice(from, from + PIECE_MAX);
    const cut = [["\n"], [". ", "! ", "? ", "。"], [" "]].map((ends) => lastEnd(part, ends)).find((at) => at > PIECE_MAX / 2);
    const end = cut ?? (isHighSurrogate(part.charCodeAt(PIECE_MAX - 1)) ? PIECE_MAX - 1 : PIECE_MAX);
    all.push(part.slice(0, end));
    from += end;
  }
  all.push(text.slice(from));
  return all;
}

const lastEnd = (text: string, ends: string[]): number =>
  Math.max(...ends.map((end) => text.lastIndexOf(end) + end.length));

const isHighSurrogate = (code: number): boolean => code >= 0xd800 && code < 0xdc00;

export function readPiece(lexer: AnswerLexer, text: string): Inline[] {
  try {
    return inlines(lexer.piece(text));
  } catch (error) {
    if (error instanceof TooMuchWork) return [plain(text)];
    throw error;
  }
}

export const plain = (text: string): Inline => ({ kind: turnsDirection(text) ? "isolate" : "text", text });

function inlines(tokens: Token[]): Inline[] {
  const all: Inline[] = [];
  for (const token of tokens) {
    const node = inline(token as Tokens.Generic);
    const last = all.at(-1);
    if (node.kind === "text" && last?.kind === "text") last.text += node.text;
    else all.push(node);
  }
  return all;
}

function inline(token: Tokens.Generic): Inline {
  switch (token.type) {
    case "strong": case "em": case "del":
      return { kind: token.type, inlines: inlines(token.tokens!) };
    case "codespan": return { kind: "code", text: token.text };
    case "br": return { kind: "break" };
    case "link": return link(token, inlines(token.tokens!));
    case "image": return link(token, [plain(`Image: ${textOf(inlines(token.tokens!)) || "no description"}`)]);
    case "maths": return { kind: "maths", source: token.text, raw: token.raw, isDisplay: token.isDisplay };
    case "note": return { kind: "note", label: token.label };
    case "checkbox": return { kind: "check", isChecked: token.checked };
    case "escape": return plain(token.text);
    case "text": return plain(decodeEntities(token.text));
    default: return plain(token.raw); // HTML
  }
}

function link(token: Tokens.Generic, shown: Inline[]): Inline {
  const href = safeHref(token.autolink ? token.href : decodeEntities(token.href));
  if (href === null) return plain(token.raw);
  return { kind: "link", href, title: decodeEntities(token.title ?? ""), inlines: shown };
}

export function textOf(nodes: Inline[]): string {
  return nodes.map((node) => {
    if ("inlines" in node) return textOf(node.inlines);
    if (node.kind === "maths") return node.raw;
    return "text" in node ? node.text : "";
  }).join("");
}
