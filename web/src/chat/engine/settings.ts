// How answers are asked for. Every field that is not set is left to the node and the model's own files (docs/http-api.md).

export interface Settings {
  system: string;
  sampling: Partial<Record<SamplingName, number | boolean>>;
  stop: string[];
  logit_bias: string; // JSON, empty: none
  dry_sequence_breakers: string; // JSON, empty: the node's
  tools: string; // JSON: a list of functions
  tool_choice: "auto" | "required" | "none";
  schema: string; // a JSON schema of the answer
  grammar: string;
  template: string; // JSON: chat_template_kwargs
  effort: "" | "none" | "low" | "medium" | "high";
  other: string; // JSON: fields that are added to the request as they are
}

interface Field {
  name: string; title: string; min?: number; max?: number; step: number | "any"; whole?: boolean; flag?: boolean; help: string;
}

export const SAMPLING_FIELDS = [
  { name: "temperature", title: "Temperature", min: 0, max: 2, step: 0.05, help: "0 always takes the likeliest token." },
  { name: "top_p", title: "Top p", min: 0, max: 1, step: 0.01, help: "Keeps the likeliest tokens whose probabilities add up to this." },
  { name: "top_k", title: "Top k", min: 0, step: 1, whole: true, help: "Keeps this many of the likeliest tokens." },
  { name: "min_p", title: "Min p", min: 0, max: 1, step: 0.01,
    help: "Keeps tokens with at least this fraction of the likeliest one's probability." },
  { name: "typical_p", title: "Typical p", min: 0, max: 1, step: 0.01, help: "Keeps tokens whose surprise is near the mean." },
  { name: "seed", title: "Seed", min: 0, step: 1, whole: true, help: "The same seed gives the same text, on any number of machines." },
  { name: "max_tokens", title: "Longest answer", min: 1, step: 1, whole: true,
    help: "In tokens; without it an answer may fill the context." },
  { name: "min_tokens", title: "Shortest answer", min: 0, step: 1, whole: true,
    help: "The answer does not end by itself before this many tokens." },
  { name: "repetition_penalty", title: "Repetition penalty", min: 0.01, step: 0.01, help: "1 is off." },
  { name: "repeat_last_n", title: "Tokens it looks at", min: -1, step: 1, whole: true, help: "-1: all." },
  { name: "presence_penalty", title: "Presence penalty", min: -2, max: 2, step: 0.05, help: "Subtracted once from tokens in the answer." },
  { name: "frequency_penalty", title: "Frequency penalty", min: -2, max: 2, step: 0.05, help: "Subtracted for each occurrence." },
  { name: "dry_multiplier", title: "DRY multiplier", min: 0, step: 0.05,
    help: "Penalises tokens that would prolong a repetition; 0 is off." },
  { name: "dry_base", title: "DRY base", min: 1, step: 0.05, help: "1.75 if missing." },
  { name: "dry_allowed_length", title: "DRY allowed length", min: 0, step: 1, whole: true, help: "2 if missing." },
  { name: "dry_penalty_last_n", title: "DRY looks at", min: -1, step: 1, whole: true, help: "Tokens; -1: all." },
  { name: "top_logprobs", title: "Log-probabilities", min: 0, max: 20, step: 1, whole: true,
    help: "Shows how sure the model was, with this many alternatives a token." },
  { name: "ignore_eos", title: "Never end by itself", step: 1, flag: true, help: "The answer goes on until its longest length." },
] as const satisfies readonly Field[];

type SamplingName = (typeof SAMPLING_FIELDS)[number]["name"];

export const NO_SETTINGS: Settings = { system: "", sampling: {}, stop: [], logit_bias: "", dry_sequence_breakers: "", tools: "",
  tool_choice: "auto", schema: "", grammar: "", template: "", effort: "", other: "" };

// Settings of any origin (an older page, an imported file) as today's: fields of a wrong type are dropped.
export function cleanSettings(value: unknown): Settings {
  const settings: Settings = { ...NO_SETTINGS, sampling: {}, stop: [] };
  if (typeof value !== "object" || value === null) return settings;
  const given = value as Record<string, unknown>;
  for (const name of ["system", "logit_bias", "dry_sequence_breakers", "tools", "schema", "grammar", "template", "other"] as const) {
    if (typeof given[name] === "string") settings[name] = given[name];
  }
  if (given.tool_choice === "required" || given.tool_choice === "none") settings.tool_choice = given.tool_choice;
  if (["none", "low", "medium", "high"].includes(given.effort as string)) settings.effort = given.effort as Settings["effort"];
  if (Array.isArray(given.stop)) settings.stop = given.stop.filter((word) => typeof word === "string");
  const sampling = (given.sampling ?? {}) as Record<string, unknown>;
  for (const field of SAMPLING_FIELDS) {
    const value = sampling[field.name];
    if ("flag" in field ? typeof value === "boolean" : typeof value === "number" && Number.isFinite(value)) {
      settings.sampling[field.name] = value as number | boolean;
    }
  }
  return settings;
}

// How many settings differ from those of the node, for the button that opens the drawer.
export function countSet(settings: Settings): number {
  const texts = ["system", "logit_bias", "dry_sequence_breakers", "tools", "schema", "grammar", "template", "effort", "other"] as const;
  return Object.keys(settings.sampling).length + texts.filter((name) => settings[name].trim() !== "").length +
    (settings.stop.length > 0 ? 1 : 0);
}

// One sentence for each text that is to be JSON and is not, or has the wrong shape.
export function faultsOf(settings: Settings): Partial<Record<keyof Settings, string>> {
  const faults: Partial<Record<keyof Settings, string>> = {};
  const check = (name: keyof Settings & ("tools" | "schema" | "logit_bias" | "dry_sequence_breakers" | "template" | "other"),
    fits: (value: unknown) => boolean, wanted: string): void => {
    const text = settings[name].trim();
    if (text === "") return;
    try {
      if (!fits(JSON.parse(text))) faults[name] = wanted;
    } catch (error) {
      faults[name] = `This is no JSON: ${(error as Error).message}.`;
    }
  };
  const isObject = (value: unknown): boolean => typeof value === "object" && value !== null && !Array.isArray(value);
  check("tools", (value) => Array.isArray(value) && value.every(isObject), "Tools are a list of objects.");
  check("schema", (value) => isObject(value) || typeof value === "boolean", "A schema is an object.");
  check("logit_bias", isObject, "This is an object from token ids to numbers.");
  check("dry_sequence_breakers", (value) => Array.isArray(value) && value.every((one) => typeof one === "string"),
    "These are a list of strings.");
  check("template", isObject, "The template's variables are an object.");
  check("other", isObject, "More fields are an object.");
  return faults;
}
