// An answer as a tree of plain data. Components show it; nothing in it is HTML.
import type { Seam } from "./types";

export type Inline =
  | { kind: "text"; text: string }
  | { kind: "isolate"; text: string } // text with characters that change its direction, which must not reach beyond it
  | { kind: "strong" | "em" | "del"; inlines: Inline[] }
  | { kind: "code"; text: string }
  | { kind: "break" }
  | { kind: "link"; href: string; title: string; inlines: Inline[] }
  | { kind: "maths"; source: string; raw: string; isDisplay: boolean }
  | { kind: "note"; label: string } // a reference to a footnote
  | { kind: "check"; isChecked: boolean }
  | { kind: "seam"; label: string };

type Align = "left" | "center" | "right" | null;
export interface ListItem { blocks: Block[] }
export interface CodeBlock { kind: "code"; language: string; text: string; isClosed: boolean; seams?: Seam[] }
export interface TableBlock { kind: "table"; align: Align[]; head: Inline[][]; rows: Inline[][][] }

export type Block =
  | { kind: "paragraph"; pieces: Inline[][] } // more than one piece where a paragraph is longer than PIECE_MAX
  | { kind: "line"; pieces: Inline[][] } // a paragraph of a tight list
  | { kind: "heading"; depth: number; pieces: Inline[][] }
  | CodeBlock
  | { kind: "quote"; blocks: Block[] }
  | { kind: "list"; isOrdered: boolean; start: number; items: ListItem[] }
  | TableBlock
  | { kind: "rule" }
  | { kind: "maths"; source: string; raw: string }
  | { kind: "footnote"; label: string; blocks: Block[] }
  | { kind: "seam"; label: string }
  | { kind: "plain"; inlines: Inline[] }; // HTML as it is written
