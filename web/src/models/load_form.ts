// The form that loads a model: its fields as text, and the bodies of /cluster/load and /cluster/plan that they make.
import type { PlanRequest } from "../cluster/plan";
import type { NodeStatus } from "../cluster/types";

export interface LoadFields {
  model: string; context: number; streams: number; ranks: number; parallelism: string; nodes: string[]; replicas: number; aliases: string;
  idleUnloadS: number; areOptionsOpen: boolean;
}
export const EMPTY: LoadFields = { model: "", context: 0, streams: 0, ranks: 0, parallelism: "auto", nodes: [], replicas: 1, aliases: "",
  idleUnloadS: 0, areOptionsOpen: false };

// 0 and empty mean that the cluster decides; such fields are left out.
export function loadBody(fields: LoadFields): Record<string, unknown> {
  const body: Record<string, unknown> = { model: fields.model.trim() };
  const aliases = fields.aliases.split(/[\s,]+/).filter((alias) => alias !== "");
  if (fields.context > 0) body.context = fields.context;
  if (fields.streams > 0) body.streams = fields.streams;
  if (fields.ranks > 0) body.parallel = fields.ranks;
  if (fields.parallelism !== "auto") body.parallelism = fields.parallelism;
  if (fields.nodes.length > 0) body.nodes = [...fields.nodes];
  if (fields.replicas > 1) body.replicas = fields.replicas;
  if (aliases.length > 0) body.aliases = aliases;
  if (fields.idleUnloadS > 0) body.idle_unload_s = fields.idleUnloadS;
  return body;
}

// The planner does not know ranks, parallelism and replicas of a load; `unplanned` names those that were set.
export function previewOf(fields: LoadFields, nodes: NodeStatus[]): { request: PlanRequest; unplanned: string[] } {
  const request: PlanRequest = { model: fields.model.trim() };
  if (fields.context > 0) request.context = fields.context;
  if (fields.streams > 0) request.streams = fields.streams;
  const left = fields.nodes.length === 0 ? [] : nodes.filter(({ id, state }) => state === "alive" && !fields.nodes.includes(id.slice(0, 8)));
  if (left.length > 0) request.remove = left.map(({ id }) => id);
  const unplanned = [fields.ranks > 0 ? "ranks" : "", fields.parallelism !== "auto" ? "parallelism" : "", fields.replicas > 1 ? "groups" : ""]
    .filter((name) => name !== "");
  return { request, unplanned };
}
