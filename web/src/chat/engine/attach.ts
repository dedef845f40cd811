// Files that are attached to a message: text only, and bounded.
import { ATTACHMENT_LENGTH_MAX } from "../store/history";
import { freshId } from "./types";

export interface Attached { id: string; name: string; text: string }

const BYTES_PER_CHARACTER_MAX = 4;
export const LONG_PASTE = 4_000; // characters; a longer paste becomes a file

// Throws Error with a sentence for a file that is too long or is not text.
export async function readTextFile(file: File): Promise<Attached> {
  if (file.size > ATTACHMENT_LENGTH_MAX * BYTES_PER_CHARACTER_MAX) throw new Error(tooLong(file.name));
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
  } catch {
    throw new Error(`${file.name} is not text in UTF-8. Only text can be attached.`);
  }
  if (text.includes("\0")) throw new Error(`${file.name} is not text. Only text can be attached.`);
  return attached(file.name, text);
}

export function attached(name: string, text: string): Attached {
  if (text.length > ATTACHMENT_LENGTH_MAX) throw new Error(tooLong(name));
  return { id: freshId(), name, text };
}

const tooLong = (name: string): string => `${name} is longer than ${ATTACHMENT_LENGTH_MAX >> 20} Mi characters.`;

// The title of a conversation: the first line of its first message.
export const titleOf = (text: string, files: readonly { name: string }[]): string => {
  const line = text.split("\n").map((one) => one.trim()).find((one) => one !== "") ?? files[0]?.name ?? "";
  return line.length > 60 ? `${line.slice(0, 59).trimEnd()}…` : line;
};
