// The first place where answers to one question part. With the same seed it shows a difference of models or precisions: here the
// number of machines changes nothing.
import type { TokenChoice } from "../../answer/types";
import type { Message } from "./types";

export interface Difference {
  at: number; // characters that are the same
  sides: { model: string; next: string; top: TokenChoice[] }[]; // what each one wrote there, and what it held likely
}

const NEXT_LENGTH = 24;

export function commonLength(texts: readonly string[]): number {
  const [first = "", ...others] = texts;
  let at = 0;
  while (at < first.length && others.every((text) => text[at] === first[at])) at += 1;
  // Not between the halves of a character outside the Basic Multilingual Plane.
  return at > 0 && /[\uD800-\uDBFF]/.test(first[at - 1]) ? at - 1 : at;
}

// undefined while the texts are the same so far.
export function firstDifference(answers: readonly Message[]): Difference | undefined {
  if (answers.length < 2) return undefined;
  const texts = answers.map((answer) => answer.text);
  const at = commonLength(texts);
  const isOver = answers.every((answer) => answer.state !== "running");
  // An answer that still runs may yet write what the others have.
  if (texts.some((text) => text.length === at) && !isOver) return undefined;
  if (texts.every((text) => text.length === at)) return undefined;
  return { at, sides: answers.map((answer) => ({ model: answer.model ?? "", ...tokenAt(answer, at) })) };
}

function tokenAt(answer: Message, at: number): { next: string; top: TokenChoice[] } {
  let begin = 0;
  // Tokens hold the whole answer only if none was dropped and there was no reasoning before it.
  for (const token of answer.reasoning ? [] : answer.tokens ?? []) {
    if (begin + token.token.length > at) return { next: token.token, top: token.top };
    begin += token.token.length;
  }
  return { next: answer.text.slice(at, at + NEXT_LENGTH), top: [] };
}
