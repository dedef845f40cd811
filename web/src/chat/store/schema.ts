// The schema of the browser's database, and the migrations from older ones.
import { cleanSettings } from "../engine/settings";

export const DATABASE = "lockstep.chat";
export const VERSION = 1;

// The stores and their indexes. `running` is only in messages that are being written.
export const STORES = {
  conversations: { key: "id", indexes: [] },
  messages: { key: "id", indexes: ["conversation", "running"] },
  attachments: { key: "id", indexes: ["conversation"] },
  drafts: { key: "conversation", indexes: [] },
} as const;
export type StoreName = keyof typeof STORES;
export const STORE_NAMES = Object.keys(STORES) as StoreName[];

export type StoredRecord = Record<string, unknown>;

// MIGRATIONS[N] makes a record of version N + 1 from one of version N; undefined: the record is dropped. It must never throw:
// people's conversations are at stake, and a record that it does not understand is better kept as it is.
export type Migration = (store: StoreName, record: StoredRecord) => StoredRecord | undefined;
const MIGRATIONS: Record<number, Migration> = {};

export function migrated(store: StoreName, record: StoredRecord, from: number, migrations = MIGRATIONS, to = VERSION):
    StoredRecord | undefined {
  let now: StoredRecord | undefined = record;
  for (let version = from; version < to; ++version) {
    const step = migrations[version];
    if (step && now) now = step(store, now);
  }
  return now;
}

// Conversations of any origin as the page needs them: a field that is missing gets its usual value.
export function cleanConversation(record: StoredRecord): StoredRecord {
  const number = (value: unknown): number => (typeof value === "number" ? value : 0);
  return {
    ...record, title: typeof record.title === "string" ? record.title : "", created_ms: number(record.created_ms),
    updated_ms: number(record.updated_ms), pinned: record.pinned === true, leaf: typeof record.leaf === "string" ? record.leaf : null,
    models: Array.isArray(record.models) ? record.models.filter((name) => typeof name === "string") : [],
    settings: cleanSettings(record.settings),
  };
}
