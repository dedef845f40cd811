// Markdown that grows as blocks of plain data. Blocks that nothing can change any more are frozen: the same objects again each time. So
// are the first items of a list and the first rows of a table that is still growing.
import type { Links, Token, Tokens } from "marked";
import { BlockReader } from "./blocks";
import { AnswerLexer } from "./lexer";
import { joined, openPart, type OpenPart } from "./open_part";
import type { Block } from "./tree";

const UNFROZEN_BLOCKS = 2; // "1. a", blank line, "2": the last block may yet join the one before it

export interface PlacedBlock { block: Block; at: number; raw: string } // `raw` is the source from `at` on
interface Item { token: Token; at: number; placed: PlacedBlock | undefined }

export class GrowingMarkdown {
  private text = "";
  private frozen: Item[] = [];
  private frozenBlocks: PlacedBlock[] = [];
  private frozenLength = 0; // characters of `text` that `frozen` covers
  private frozenLinks: Links = {}; // defined by frozen blocks
  private open: OpenPart | undefined; // of the block that follows the frozen ones
  private links: Links = {}; // defined by all blocks
  private reader = new BlockReader();
  private blockWork = 0;

  // Characters that the rules were tried on so far: what the text has cost.
  get work(): number { return this.blockWork + this.reader.work; }

  get length(): number { return this.text.length; }

  // The blocks of the whole text, of which those finished before are the same objects as last time.
  update(text: string): PlacedBlock[] {
    const clean = text.replace(/\r\n|\r/g, "\n").replaceAll("\0", "\uFFFD");
    if (!clean.startsWith(this.text.slice(0, this.frozenLength + (this.open?.length ?? 0)))) this.restart();
    this.text = clean;
    const tokens = this.readRest();
    const links = this.definitions(tokens);
    const changed = changedLabels(this.links, links);
    this.links = links;
    this.reader.begin(links, changed.length > 0);
    if (changed.length > 0) this.readAgain(changed);
    let at = this.frozenLength;
    const rest = tokens.map((token) => {
      const item: Item = { token, at, placed: this.placed(token, at) };
      at += token.raw.length;
      return item;
    });
    const all = [...this.frozenBlocks, ...rest.flatMap((item) => item.placed ?? [])];
    this.freeze(rest);
    return all;
  }

  private restart(): void {
    this.frozen = [];
    this.frozenBlocks = [];
    this.frozenLength = 0;
    this.frozenLinks = {};
    this.open = undefined;
  }

  private readRest(): Token[] {
    const lexer = new AnswerLexer();
    const from = this.frozenLength + (this.open?.length ?? 0);
    const tokens = lexer.blocks((this.open?.head ?? "") + copied(this.text.slice(from)), this.reader.sources);
    this.blockWork += lexer.work;
    if (!this.open) return tokens;
    const whole = joined(this.open, tokens);
    if (whole) return whole;
    this.restart();
    return this.readRest();
  }

  // The first definition of a label counts.
  private definitions(tokens: Token[]): Links {
    const links = Object.assign(Object.create(null), this.frozenLinks) as Links;
    for (const { tag, href, title } of tokens.flatMap(definitionsIn) as Tokens.Def[]) links[tag] ??= { href, title };
    return links;
  }

  private placed(token: Token, at: number): PlacedBlock | undefined {
    const block = this.reader.block(token);
    return block && { block, at, raw: token.raw };
  }

  // A link's definition also counts for what stands above it.
  private readAgain(labels: string[]): void {
    for (const item of this.frozen) {
      const written = item.token.raw.replace(/\s+/g, " ").toLowerCase().toUpperCase().toLowerCase();
      if (labels.some((label) => written.includes(label))) item.placed = this.placed(item.token, item.at);
    }
    this.frozenBlocks = this.frozen.flatMap((item) => item.placed ?? []);
  }

  private freeze(rest: Item[]): void {
    const last = rest.at(-1);
    const isOpen = last !== undefined && openPart(last.token) !== undefined;
    const end = finishedCount(rest, isOpen ? 1 : UNFROZEN_BLOCKS);
    const finished = rest.slice(0, end);
    const raw = finished.map((item) => item.token.raw).join("");
    // Tokens that do not repeat their text exactly (tabs) are read again with the next update.
    if (!this.text.startsWith(raw, this.frozenLength)) return;
    if (end > 0) {
      this.frozenLinks = this.definitionsOf(finished);
      this.frozen.push(...finished);
      this.frozenBlocks.push(...finished.flatMap((item) => item.placed ?? []));
      this.frozenLength += raw.length;
      this.open = undefined;
    }
    const part = end === rest.length - 1 ? openPart(last!.token) : undefined;
    if (part && this.text.startsWith(part.raw, this.frozenLength)) this.open = part;
  }

  private definitionsOf(items: Item[]): Links {
    return this.definitions(items.map((item) => item.token));
  }
}

// Engines keep a whole string for each part that was sliced from it. Blocks are kept for good, so they are parts of a string that holds
// little else, or each would hold the whole answer as it was then.
const copied = (part: string): string => ` ${part}`.slice(1);

// How many of the items nothing can change any more.
function finishedCount(rest: Item[], unfrozen: number): number {
  const blocks = rest.flatMap((item, at) => (item.token.type === "space" ? [] : [at]));
  if (blocks.length <= unfrozen) return 0;
  let end = blocks[blocks.length - unfrozen];
  // A paragraph decides how the line after it is read, unless that line begins another block by itself.
  const isAlone = ["list", "table", "code", "heading"].includes(rest[end].token.type);
  while (!isAlone && end > 0 && rest[end - 1].token.type === "paragraph") end -= 1;
  return end;
}

const definitionsWithin = new WeakMap<object, Token[]>();
const NONE: Token[] = [];

// The definitions in a token, of which most have none. The items of a list that grows are the same objects each time.
function definitionsIn(token: Token): Token[] {
  if (token.type === "def") return [token];
  const isContainer = token.type === "list_item" || token.type === "blockquote" || token.type === "footnote";
  const parts: Token[] = token.type === "list" ? token.items : isContainer ? token.tokens ?? NONE : NONE;
  if (parts.length === 0) return NONE;
  const known = token.type === "list_item" ? definitionsWithin.get(token) : undefined;
  if (known) return known;
  const found = parts.flatMap(definitionsIn);
  if (token.type === "list_item") definitionsWithin.set(token, found.length === 0 ? NONE : found);
  return found;
}

function changedLabels(before: Links, after: Links): string[] {
  const same = (a: Links[string] | undefined, b: Links[string] | undefined): boolean => a?.href === b?.href && a?.title === b?.title;
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].filter((label) => !same(before[label], after[label]));
}
