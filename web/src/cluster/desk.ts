// The what-if desk: the machines of the cluster and of the planner's shelf, and what becomes of each model without some of them.
import { lackOf, type Plan, type PlanRequest } from "./plan";

interface Added { name: string; profile: string; link: string }
export interface Desk { model: string; context: number; streams: number; link: string; add: Added[]; remove: string[] }

const ADDED_MAX = 64; // as /cluster/plan takes

export function withMachine(desk: Desk, profile: string): Added[] {
  if (desk.add.length >= ADDED_MAX) return desk.add;
  let number = 1;
  while (desk.add.some(({ name }) => name === `${profile}-${number}`)) number += 1;
  return [...desk.add, { name: `${profile}-${number}`, profile, link: desk.link }];
}

// `without` is a machine that is lost in addition: a node's id, or the name of an added one.
export function requestOf(desk: Desk, model: string, without = "", limits = true): PlanRequest {
  const request: PlanRequest = { model };
  if (limits && desk.context > 0) request.context = desk.context;
  if (limits && desk.streams > 0) request.streams = desk.streams;
  const add = desk.add.filter(({ name }) => name !== without).map(({ name, profile, link }) => ({ name, profile, link }));
  const isNode = without !== "" && !desk.add.some(({ name }) => name === without);
  const remove = isNode ? [...desk.remove, without] : [...desk.remove];
  if (add.length > 0) request.add = add;
  if (remove.length > 0) request.remove = remove;
  return request;
}

export interface Fate { word: string; isGood: boolean; tokS?: number; sentence: string }

// Whether a model would live: `refusal` is the node's sentence if it could not plan at all (for example: no machine is left).
export function fateOf(plan: Plan | undefined, refusal: string): Fate {
  if (!plan) return { word: "no plan", isGood: false, sentence: refusal };
  if (!plan.choice) return { word: "would wait", isGood: false, sentence: lackOf(plan) };
  return { word: "survives", isGood: true, tokS: plan.choice.decode_tok_s, sentence: "" };
}
