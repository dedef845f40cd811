// The lines under an answer and under the composer, in words.
import { bytes, count, figure, plural, rate, seconds } from "../../lib/format";
import type { Loading } from "../../cluster/types";
import type { Show } from "./running_answer.svelte";
import type { Figures, Message } from "./types";

// 142 tokens, 23.1 tok/s, first 0.31 s, 812 reused + 34 new, 2 machines, 41 J: what is known of it.
export function figuresLine({ tokens, tokens_s, first_s, prompt_cached, prompt_new, machines, joules }: Figures): string {
  const prompt = [prompt_cached ? `${count(prompt_cached)} reused` : "", prompt_new !== undefined ? `${count(prompt_new)} new` : ""];
  return [
    tokens === undefined ? "" : plural(tokens, "token"),
    tokens_s === undefined ? "" : `${figure(tokens_s)} tok/s`,
    first_s === undefined ? "" : `first ${figure(first_s)} s`,
    prompt.filter((part) => part !== "").join(" + "),
    machines === undefined ? "" : plural(machines, "machine"),
    joules === undefined ? "" : `${figure(joules)} J`,
  ].filter((part) => part !== "").join(", ");
}

const ORDINALS = ["th", "st", "nd", "rd"];

export function ordinal(value: number): string {
  const tens = value % 100;
  return `${value}${(tens > 10 && tens < 14 ? undefined : ORDINALS[value % 10]) ?? "th"}`;
}

export function loadingLine({ read_bytes, whole_bytes, bytes_s, seconds_left }: Loading): string {
  return [`${bytes(read_bytes)} of ${bytes(whole_bytes)}`, rate(bytes_s), seconds_left === undefined ? "" : `${seconds(seconds_left)} left`]
    .filter((part) => part !== "").join(", ");
}

// The phase of a running answer in words, and how much of it is done (0 to 1) if that is known.
export function runningLine(show: Show, model: string, loading?: Loading, sentence?: string): { text: string; part?: number } {
  if (show.lost) return { text: show.lost };
  if (show.paused) return { text: `Paused: ${show.paused}. The text goes on once the machines are together again.` };
  if (show.phase === "queued") return { text: "Waits until one of the other answers has ended." };
  if (show.phase === "loading") return loadingNow(model, loading, sentence);
  if (show.phase === "prompt" && show.progress) return promptNow(show);
  if (show.phase !== "text") {
    const place = show.place === undefined ? "" : `, ${ordinal(show.place)} in the queue`;
    return { text: `Waiting for the first token${place}, ${seconds(Math.floor(show.waited_s))}` };
  }
  const speed = show.tokens_s === undefined ? "" : `, ${figure(show.tokens_s)} tok/s`;
  return { text: `${plural(show.tokens, "token")}${speed}` };
}

function loadingNow(model: string, loading: Loading | undefined, sentence?: string): { text: string; part?: number } {
  if (!loading) return { text: sentence || `Waiting until ${model} is loaded.` };
  return { text: `Loading ${model}: ${loadingLine(loading)}`, part: loading.read_bytes / Math.max(1, loading.whole_bytes) };
}

function promptNow(show: Show): { text: string; part?: number } {
  const { total, cached, processed, time_ms } = show.progress!;
  const computed = processed - cached;
  const left = computed > 0 ? ((total - processed) * time_ms) / computed / 1000 : undefined;
  const parts = [`Reading ${count(processed)} of ${count(total)} tokens`, cached > 0 ? `${count(cached)} reused` : "",
    left === undefined ? "" : `${seconds(Math.ceil(left))} left`];
  return { text: parts.filter((part) => part !== "").join(", "), part: processed / Math.max(1, total) };
}

// From the times at which tokens came: how long each one after the first took.
export const gapsOf = (times_ms: readonly number[]): number[] => times_ms.slice(1).map((time, at) => time - times_ms[at]);

// An answer that can be written on: it was cut, or its longest length or the context ended it.
export const canContinue = (message: Message): boolean => message.role === "assistant" && message.text !== "" &&
  (message.calls?.length ?? 0) === 0 && (message.state === "cut" || (message.state === "done" && message.finish === "length"));
