// Where records lie: the browser's database, or memory where there is none (private windows, tests).
import { STORES, type StoredRecord, type StoreName } from "./schema";

export type Change = { store: StoreName; put: object } | { store: StoreName; remove: string };

export interface Backend {
  all(store: StoreName): Promise<StoredRecord[]>;
  get(store: StoreName, key: string): Promise<StoredRecord | undefined>;
  // The records whose field `index` has the value.
  find(store: StoreName, index: string, value: IDBValidKey): Promise<StoredRecord[]>;
  // Calls `visit` for each record until it returns false.
  each(store: StoreName, visit: (record: StoredRecord) => boolean): Promise<void>;
  // All of the changes, or none of them.
  write(changes: readonly Change[]): Promise<void>;
}

export class MemoryBackend implements Backend {
  private readonly stores = new Map<StoreName, Map<string, StoredRecord>>();

  private store(name: StoreName): Map<string, StoredRecord> {
    let store = this.stores.get(name);
    if (!store) this.stores.set(name, (store = new Map()));
    return store;
  }

  async all(store: StoreName): Promise<StoredRecord[]> { return [...this.store(store).values()]; }
  async get(store: StoreName, key: string): Promise<StoredRecord | undefined> { return this.store(store).get(key); }

  async find(store: StoreName, index: string, value: IDBValidKey): Promise<StoredRecord[]> {
    return [...this.store(store).values()].filter((record) => record[index] === value);
  }

  async each(store: StoreName, visit: (record: StoredRecord) => boolean): Promise<void> {
    for (const record of this.store(store).values()) if (!visit(record)) return;
  }

  async write(changes: readonly Change[]): Promise<void> {
    for (const change of changes) {
      if ("remove" in change) this.store(change.store).delete(change.remove);
      else this.store(change.store).set((change.put as StoredRecord)[STORES[change.store].key] as string,
        structuredClone(change.put) as StoredRecord);
    }
  }
}
