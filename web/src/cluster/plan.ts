// POST /cluster/plan: what the planner predicts (docs/planner.md). At most two at a time, since each takes processor time.
import { json } from "../lib/api";
import { Lane } from "./lane";
import type { ModelStatus } from "./types";

export interface PlanRequest {
  model: string; draft_model?: string; ngrams_on_disk?: boolean; kv?: string; context?: number; streams?: number; add?: { profile: string; link: string; name?: string }[]; remove?: string[];
}
interface PlannedRank {
  machine: string; share: number; stage: number; layers: [number, number]; // the second is the first one that it does not have
  weight_bytes: number; state_bytes: number; buffer_bytes: number; process_bytes: number; memory_bytes: number; available_bytes: number;
}
interface TokenTimes { weights: number; state: number; kernels: number; compute: number; exchange: number; hops: number }
export interface Placement {
  kind: string; machines: number; fits: boolean; decode_tok_s: number; decode_tok_s_short: number; total_tok_s: number;
  first_token_s: number | null; joule_per_token: number | null; price_usd: number | null; has_estimates: boolean;
  token_us: TokenTimes; groups: { stages: number; ranks: PlannedRank[] }[]; problem?: string;
}
export interface Plan {
  model: string; format: string | null; context: number; streams: number; prompt_tokens: number;
  choice: Placement | null; explanation: string; placements: Placement[]; refused: Placement[];
}

const PLANS_AT_ONCE = 2;
const PLAN_MS = 60_000;
const lane = new Lane(PLANS_AT_ONCE);

// Throws ApiError, or AbortError once `signal` is aborted.
export function askPlan(request: PlanRequest, signal?: AbortSignal): Promise<Plan> {
  return lane.run(() => json<Plan>("POST", "/cluster/plan", request, { signal: withDeadline(signal) }), signal);
}

// Old browsers cannot join signals; there the node's own limit of processor time for a plan is the deadline.
function withDeadline(signal: AbortSignal | undefined): AbortSignal {
  const deadline = AbortSignal.timeout(PLAN_MS);
  if (!signal) return deadline;
  return "any" in AbortSignal ? AbortSignal.any([signal, deadline]) : signal;
}

interface MachineShare { machine: string; bytes: number; available: number; ranks: { text: string }[] }

// The share of each machine, in the order of the ranks.
export function sharesOf(placement: Placement): MachineShare[] {
  const shares: MachineShare[] = [];
  for (const group of placement.groups) {
    for (const rank of group.ranks) {
      let share = shares.find((other) => other.machine === rank.machine);
      if (!share) shares.push(share = { machine: rank.machine, bytes: 0, available: rank.available_bytes, ranks: [] });
      share.bytes += rank.memory_bytes;
      share.ranks.push({ text: rankText(rank, group.ranks) });
    }
  }
  return shares;
}

function rankText(rank: PlannedRank, ranks: PlannedRank[]): string {
  const peers = ranks.filter((other) => other.stage === rank.stage);
  const whole = peers.reduce((sum, other) => sum + other.share, 0);
  const part = peers.length > 1 && whole > 0 ? `${Math.round((100 * rank.share) / whole)} % of ` : "";
  return `${part}layers ${rank.layers[0]} to ${rank.layers[1] - 1}`;
}

const TIME_WORDS: Record<keyof TokenTimes, string> = {
  weights: "reading weights", state: "reading keys and values", kernels: "overhead of operations", compute: "arithmetic",
  exchange: "exchanges between ranks", hops: "hops between stages",
};

interface TimePart { name: keyof TokenTimes; word: string; us: number; part: number }

// The parts of a token's time, the largest first; parts of 0 are left out.
export function timeParts(times: TokenTimes): TimePart[] {
  const names = Object.keys(TIME_WORDS) as (keyof TokenTimes)[];
  const whole = names.reduce((sum, name) => sum + (times[name] ?? 0), 0);
  return names.map((name) => ({ name, word: TIME_WORDS[name], us: times[name] ?? 0, part: whole > 0 ? (times[name] ?? 0) / whole : 0 }))
    .filter(({ us }) => us > 0).sort((a, b) => b.us - a.us);
}

// The planned placement that a loaded model has now: on the same machines, with as many groups and stages; undefined if it is not listed.
export function asPlaced(plan: Plan, model: ModelStatus | undefined): Placement | undefined {
  const places = model?.placement ?? [];
  if (places.length === 0) return undefined;
  const names = (list: string[]): string => [...new Set(list)].sort().join("\n");
  const wanted = names(places.map((place) => place.node_name));
  const groups = new Set(places.map((place) => place.group)).size;
  return plan.placements.find((other) => other.groups.length === groups && other.groups[0]?.stages === (model?.stages ?? 1) &&
    names(other.groups.flatMap((group) => group.ranks.map((rank) => rank.machine))) === wanted);
}

// "fits on 2 of 3" and the like: on how many of `machines` the choice runs, or that nothing fits.
export function fitText(plan: Plan, machines: number): string {
  if (!plan.choice) return machines === 1 ? "does not fit on this machine" : `does not fit on ${machines} machines together`;
  return machines === 1 ? "fits" : `fits on ${plan.choice.machines} of ${machines}`;
}

// Why nothing fits: the first refusal's sentence.
export function lackOf(plan: Plan): string {
  return plan.choice ? "" : (plan.refused.find((other) => other.problem)?.problem ?? plan.explanation);
}
