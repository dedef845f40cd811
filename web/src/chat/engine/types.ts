// A conversation as the page keeps it. All of this is stored in the browser as it stands (store/schema.ts), so a change of these
// shapes needs a new version there, unless it is a member that may be absent.
import type { Seam, TokenLogprob, ToolCall } from "../../answer/types";
import type { Settings } from "./settings";

export interface Conversation {
  id: string;
  title: string;
  created_ms: number;
  updated_ms: number;
  pinned: boolean;
  leaf: string | null; // the last message of the branch that is shown
  models: string[]; // who answers; several: side by side
  settings: Settings;
}

interface Attachment { id: string; name: string; length: number } // length in characters; the text is in a store of its own

interface Usage { prompt_tokens: number; completion_tokens: number; cached_tokens?: number }

// Speed of an answer. Times are the node's, or the page's if the node sends none.
export interface Figures {
  prompt_new?: number; // tokens of the prompt that were computed
  prompt_cached?: number;
  prompt_s?: number; // from the moment its turn came to the first token
  tokens?: number;
  tokens_s?: number;
  first_s?: number;
  machines?: number;
  joules?: number;
}

// running: some tab writes it. cut: it ended before the model ended it, and can be continued. failed: there is nothing of it.
type AnswerState = "running" | "done" | "cut" | "failed";

export interface Message {
  id: string;
  conversation: string;
  parent: string | null;
  role: "user" | "assistant";
  text: string;
  created_ms: number;
  attachments?: Attachment[];
  edited?: boolean;
  // The rest is of answers only.
  model?: string;
  state?: AnswerState;
  running?: 1; // only while it runs, for the index of running answers
  note?: string; // why it was cut or has failed, in the node's words
  reasoning?: string;
  reasoning_s?: number;
  calls?: ToolCall[];
  finish?: string;
  stream?: { id: string; next: number }; // the kept stream, and the number of the event to read next
  group?: string; // answers that were asked for side by side
  body?: Record<string, unknown>; // the request without its messages or prompt, as it was sent
  system?: string; // the system prompt that it was sent with
  continued_at?: number; // the length of the text when it was last continued
  usage?: Usage;
  figures?: Figures;
  seams?: Seam[];
  tokens?: TokenLogprob[];
  times_ms?: number[]; // when the events with text arrived, from the start of the request
  receipt?: { text: string; answer_ids?: number[] };
}

// A random name of 24 characters. Plain http has no crypto.randomUUID, but getRandomValues.
export function freshId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
