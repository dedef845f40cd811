// The form that loads a model: its fields as text, and the bodies of /cluster/load and /cluster/plan that they make.
import type { PlanRequest } from "../cluster/plan";
import type { ModelStatus, NodeStatus } from "../cluster/types";

export interface LoadFields {
  model: string; draftModel: string; context: number; streams: number; ranks: number; parallelism: string; nodes: string[]; replicas: number; aliases: string;
  idleUnloadS: number; kv: string; ngramsOnDisk: boolean; areOptionsOpen: boolean;
}
export const EMPTY: LoadFields = { model: "", draftModel: "", context: 0, streams: 0, ranks: 0, parallelism: "auto", nodes: [], replicas: 1, aliases: "",
  idleUnloadS: 0, kv: "", ngramsOnDisk: false, areOptionsOpen: false };

// 0 and empty mean that the cluster decides; such fields are left out.
export function loadBody(fields: LoadFields, models: ModelStatus[]): Record<string, unknown> {
  const body: Record<string, unknown> = { model: fields.model.trim() };
  // A model that is wanted already is placed again; its name is not its path.
  const path = models.find(({ name }) => name === body.model)?.wanted?.path;
  if (typeof path === "string" && path !== body.model) body.path = path;
  const aliases = fields.aliases.split(/[\s,]+/).filter((alias) => alias !== "");
  if (fields.draftModel.trim() !== "") body.draft_model = fields.draftModel.trim();
  if (fields.context > 0) body.context = fields.context;
  if (fields.streams > 0) body.streams = fields.streams;
  if (fields.ranks > 0) body.parallel = fields.ranks;
  if (fields.parallelism !== "auto") body.parallelism = fields.parallelism;
  if (fields.nodes.length > 0) body.nodes = [...fields.nodes];
  if (fields.replicas > 1) body.replicas = fields.replicas;
  if (aliases.length > 0) body.aliases = aliases;
  if (fields.idleUnloadS > 0) body.idle_unload_s = fields.idleUnloadS;
  if (fields.kv !== "") body.kv = fields.kv;
  if (fields.ngramsOnDisk) body.ngrams_on_disk = true;
  return body;
}

// A folder or a file. The planner reads none before they are loaded.
export const isPath = (model: string): boolean => model.startsWith("/");

// Such a name would be wanted for ever and wait for ever; empty if it may be one.
export function whyNoModel(model: string): string {
  if (isPath(model) || /^[^/~]+\/[^/]/.test(model)) return "";
  return `"${model}" is neither a model of a hub, like org/name, nor the path of a folder or .gguf file, which begins with /.`;
}

// As /cluster/load takes ids of nodes.
const shortId = (id: string): string => id.slice(0, 8);

const draftModelOf = (wanted: ModelStatus["wanted"]): string => (typeof wanted?.draft_model === "string" ? wanted.draft_model : "");

// The form for a model that is wanted already, with what it was loaded with.
export function fieldsOf({ name, wanted = {} }: ModelStatus): LoadFields {
  const number = (value: unknown, otherwise: number): number => (typeof value === "number" ? value : otherwise);
  const list = (value: unknown): string[] => (Array.isArray(value) ? value.map(String) : []);
  return { model: name, draftModel: draftModelOf(wanted), context: number(wanted.context, 0), streams: number(wanted.streams, 0), ranks: number(wanted.parallel, 0),
    parallelism: typeof wanted.parallelism === "string" ? wanted.parallelism : "auto", nodes: list(wanted.nodes).map(shortId),
    replicas: number(wanted.replicas, 1), aliases: list(wanted.aliases).join(", "), idleUnloadS: number(wanted.idle_unload_s, 0),
    kv: typeof wanted.kv === "string" ? wanted.kv : "", ngramsOnDisk: wanted.ngrams_on_disk === true, areOptionsOpen: true };
}

// The planner does not know ranks, parallelism and replicas of a load, nor files that no model was loaded from; `unplanned` names those
// that were set. It knows the draft model with which a model is loaded.
export function previewOf(fields: LoadFields, nodes: NodeStatus[], loaded?: ModelStatus): { request: PlanRequest; unplanned: string[] } {
  const request: PlanRequest = { model: fields.model.trim() };
  if (fields.context > 0) request.context = fields.context;
  if (fields.streams > 0) request.streams = fields.streams;
  if (fields.kv !== "") request.kv = fields.kv;
  const isLeft = ({ id, state }: NodeStatus): boolean => state === "alive" && !fields.nodes.includes(shortId(id));
  const left = fields.nodes.length === 0 ? [] : nodes.filter(isLeft);
  if (left.length > 0) request.remove = left.map(({ id }) => id);
  const draftModel = fields.draftModel.trim();
  const isOtherDraft = draftModel !== draftModelOf(loaded?.wanted);
  if (isOtherDraft && !isPath(draftModel)) request.draft_model = draftModel;
  if (fields.ngramsOnDisk !== (loaded?.wanted?.ngrams_on_disk === true)) request.ngrams_on_disk = fields.ngramsOnDisk;
  const set = { "the draft model": isOtherDraft && isPath(draftModel), ranks: fields.ranks > 0, parallelism: fields.parallelism !== "auto", groups: fields.replicas > 1 };
  const unplanned = Object.entries(set).filter(([, isSet]) => isSet).map(([name]) => name);
  return { request, unplanned };
}
