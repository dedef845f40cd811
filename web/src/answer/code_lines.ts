// Code as chunks of CODE_CHUNK_LINES lines, each a list of coloured leaves, with seams at their places. A chunk whose text has not
// changed is the same array as last time, so a growing block changes its last chunk only.
import { CODE_CHUNK_LINES } from "./limits";
import type { Seam } from "./types";

export interface CodeLeaf { text: string; scope: string } // scope "": plain; "seam": `text` is the label

// The first `coloured` chunks have their colours.
export function codeLines(): { chunks(leaves: CodeLeaf[], seams: Seam[], coloured: number): CodeLeaf[][] } {
  let before: CodeLeaf[][] = [];
  return {
    chunks(leaves, seams, coloured) {
      const all = split(cut(leaves, seams)).map((chunk, at) => (at < coloured ? chunk : plain(chunk)));
      before = all.map((chunk, at) => (isSame(chunk, before[at]) ? before[at] : chunk));
      return before;
    },
  };
}

function plain(chunk: CodeLeaf[]): CodeLeaf[] {
  const all: CodeLeaf[] = [];
  for (const leaf of chunk) {
    const last = all.at(-1);
    if (leaf.scope !== "seam" && last?.scope === "") last.text += leaf.text;
    else all.push(leaf.scope === "seam" ? leaf : { text: leaf.text, scope: "" });
  }
  return all;
}

function isSame(chunk: CodeLeaf[], old: CodeLeaf[] | undefined): boolean {
  return old !== undefined && old.length === chunk.length &&
    chunk.every(({ text, scope }, at) => old[at].text === text && old[at].scope === scope);
}

function cut(leaves: CodeLeaf[], seams: Seam[]): CodeLeaf[] {
  if (seams.length === 0) return leaves;
  const all: CodeLeaf[] = [];
  let at = 0;
  let next = 0;
  for (const { text, scope } of leaves) {
    let from = 0;
    while (next < seams.length && seams[next].at < at + text.length) {
      const place = Math.max(from, seams[next].at - at);
      if (place > from) all.push({ text: text.slice(from, place), scope });
      all.push({ text: seams[next++].label, scope: "seam" });
      from = place;
    }
    if (from < text.length) all.push({ text: text.slice(from), scope });
    at += text.length;
  }
  return [...all, ...seams.slice(next).map(({ label }) => ({ text: label, scope: "seam" }))];
}

function split(leaves: CodeLeaf[]): CodeLeaf[][] {
  const chunks: CodeLeaf[][] = [[]];
  let lines = 0;
  for (const { text, scope } of leaves) {
    let from = 0;
    for (let end = text.indexOf("\n"); scope !== "seam" && end >= 0; end = text.indexOf("\n", end + 1)) {
      lines += 1;
      if (lines % CODE_CHUNK_LINES !== 0) continue;
      chunks.at(-1)!.push({ text: text.slice(from, end + 1), scope });
      chunks.push([]);
      from = end + 1;
    }
    if (from < text.length) chunks.at(-1)!.push({ text: text.slice(from), scope });
  }
  return chunks;
}
