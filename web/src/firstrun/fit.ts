// Models that would fit here, by the planner: the first door.
import { askPlan } from "../cluster/plan";

export interface Fit { id: string; title: string; bytes: number; tokensPerSecond: number; machines: number }

// Largest first: the planner's short names and where the weights are. All of them are trained for chat and tools, open and not gated.
const CANDIDATES: { name: string; id: string; title: string }[] = [
  { name: "gpt-oss-120b", id: "openai/gpt-oss-120b", title: "gpt-oss 120B" },
  { name: "qwen3-coder-30b-a3b", id: "Qwen/Qwen3-Coder-30B-A3B-Instruct", title: "Qwen3 Coder 30B" },
  { name: "gpt-oss-20b", id: "openai/gpt-oss-20b", title: "gpt-oss 20B" },
  { name: "qwen3-8b", id: "Qwen/Qwen3-8B", title: "Qwen3 8B" },
  { name: "qwen3-4b", id: "Qwen/Qwen3-4B", title: "Qwen3 4B" },
  { name: "qwen3-1.7b", id: "Qwen/Qwen3-1.7B", title: "Qwen3 1.7B" },
  { name: "qwen3-0.6b", id: "Qwen/Qwen3-0.6B", title: "Qwen3 0.6B" },
];
const FITS_MAX = 3;
const SLOW_TOK_S = 3; // below it an answer is slower than most people read
const CONTEXT = 8_192;

// Asks the planner for one candidate after the other until three fit and are not slow. Throws ApiError if it cannot be asked at all.
export async function modelsThatFit(): Promise<Fit[]> {
  const fits: Fit[] = [];
  for (const { name, id, title } of CANDIDATES) {
    const { choice } = await askPlan({ model: name, context: CONTEXT });
    if (!choice) continue;
    const bytes = choice.groups.flatMap(({ ranks }) => ranks).reduce((sum, rank) => sum + rank.weight_bytes, 0);
    fits.push({ id, title, bytes, tokensPerSecond: choice.decode_tok_s, machines: choice.machines });
    if (fits.filter(isQuick).length === FITS_MAX) break;
  }
  return offered(fits);
}

const isQuick = (fit: Fit): boolean => fit.tokensPerSecond >= SLOW_TOK_S;

// Three of those that fit, in their order: slow ones only where there are not enough others, the quickest of them first of all.
export function offered(fits: readonly Fit[]): Fit[] {
  const slow = fits.filter((fit) => !isQuick(fit)).sort((a, b) => b.tokensPerSecond - a.tokensPerSecond);
  const chosen = new Set([...fits.filter(isQuick), ...slow].slice(0, FITS_MAX));
  return fits.filter((fit) => chosen.has(fit));
}
