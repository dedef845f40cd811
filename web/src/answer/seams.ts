// Lines drawn into an answer at places of its source. The blocks are read without them, so a seam never changes how the text reads.
import type { PlacedBlock } from "./markdown";
import { textOf } from "./inlines";
import type { Block, Inline } from "./tree";
import type { Seam } from "./types";

export function withSeams(placed: PlacedBlock[], seams: Seam[]): Block[] {
  if (seams.length === 0) return placed.map(({ block }) => block);
  const sorted = [...seams].sort((a, b) => a.at - b.at);
  const all: Block[] = [];
  let next = 0;
  for (const { block, at, raw } of placed) {
    while (next < sorted.length && sorted[next].at <= at) all.push(seamOf(sorted[next++]));
    const inside: Seam[] = [];
    while (next < sorted.length && sorted[next].at < at + raw.trimEnd().length) inside.push(sorted[next++]);
    all.push(...(inside.length === 0 ? [block] : kept(block, inside, () => new Cutter(raw, at, inside).cut(block))));
  }
  while (next < sorted.length) all.push(seamOf(sorted[next++]));
  return all;
}

const seamOf = ({ label }: Seam): { kind: "seam"; label: string } => ({ kind: "seam", label });

// A block that stays the same object keeps its copy with seams.
const copies = new WeakMap<Block, { key: string; made: Block[] }>();

function kept(block: Block, seams: Seam[], make: () => Block[]): Block[] {
  const key = JSON.stringify(seams);
  const old = copies.get(block);
  if (old?.key === key) return old.made;
  const made = make();
  copies.set(block, { key, made });
  return made;
}

// Walks a block's text along its source and puts each seam where the source has passed its place.
class Cutter {
  private read = 0; // characters of `raw` that the text so far has used up
  private next = 0;

  constructor(private raw: string, private at: number, private seams: Seam[]) {}

  // Seams after the last of the text, as in the line under a heading, stand below the block.
  cut(block: Block): Block[] {
    const copy = this.block(block);
    return [copy, ...this.seams.slice(this.next).map(seamOf)];
  }

  private block(block: Block): Block {
    const inlines = (nodes: Inline[]): Inline[] => this.inlines(nodes);
    switch (block.kind) {
      case "paragraph": case "line": case "heading": return { ...block, pieces: block.pieces.map(inlines) };
      case "quote": case "footnote": return { ...block, blocks: block.blocks.map((inner) => this.block(inner)) };
      case "list": return { ...block, items: block.items.map(({ blocks }) => ({ blocks: blocks.map((inner) => this.block(inner)) })) };
      case "table": return { ...block, head: block.head.map(inlines), rows: block.rows.map((row) => row.map(inlines)) };
      case "code": return { ...block, seams: this.cuts(block.text).map(({ seam, at }) => ({ at, label: seam.label })) };
      case "plain": return { ...block, inlines: this.inlines(block.inlines) };
      default: return block;
    }
  }

  private inlines(nodes: Inline[]): Inline[] {
    return nodes.flatMap((node): Inline[] => {
      if ("inlines" in node) return [{ ...node, inlines: this.inlines(node.inlines) }];
      const text = textOf([node]);
      const cuts = this.cuts(text);
      if (cuts.length === 0) return [node];
      if (node.kind !== "text" && node.kind !== "isolate") return [node, ...cuts.map(({ seam }) => seamOf(seam))];
      const parts: Inline[] = [];
      let from = 0;
      for (const { seam, at } of cuts) {
        if (at > from) parts.push({ ...node, text: text.slice(from, at) });
        parts.push(seamOf(seam));
        from = at;
      }
      return from < text.length ? [...parts, { ...node, text: text.slice(from) }] : parts;
    });
  }

  // The seams that fall into `text`, with their places in it.
  private cuts(text: string): { seam: Seam; at: number }[] {
    const found: { seam: Seam; at: number }[] = [];
    let passed = 0; // characters of `text`
    for (const line of text.split(/(?<=\n)/)) {
      const start = this.find(line);
      while (this.next < this.seams.length && this.seams[this.next].at - this.at < start + line.length) {
        found.push({ seam: this.seams[this.next], at: passed + Math.max(0, this.seams[this.next].at - this.at - start) });
        this.next += 1;
      }
      this.read = start + line.length;
      passed += line.length;
    }
    return found;
  }

  // The position of a line of the text in the source; the current one if the line is written otherwise there (an entity).
  private find(line: string): number {
    const whole = line.replace(/\n$/, "");
    if (whole === "") return this.read;
    const at = this.raw.indexOf(whole, this.read);
    return at < 0 ? this.read : at;
  }
}
