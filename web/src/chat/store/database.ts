// The browser's database (Indexed Database API 3.0) as a Backend.
import type { Backend, Change } from "./backend";
import { DATABASE, migrated, STORE_NAMES, STORES, VERSION, type StoredRecord, type StoreName } from "./schema";

const OPEN_MS = 5_000;
const BATCH = 200; // records

function settled<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error ?? new Error("The browser's database does not answer."));
  });
}

// Rejects where the browser has no database or keeps it from us, and after OPEN_MS if another tab holds an older version open.
export async function openDatabase(): Promise<Backend> {
  const request = indexedDB.open(DATABASE, VERSION);
  request.onupgradeneeded = ({ oldVersion }) => upgrade(request.transaction!, oldVersion);
  const late = new Promise<never>((_, reject) => setTimeout(() => reject(new Error("The browser's database does not open. " +
    "Close other tabs of this page and reload.")), OPEN_MS));
  const database = await Promise.race([settled(request), late]);
  database.onversionchange = () => database.close(); // A newer page in another tab may go on; this one says so at its next write.
  return new DatabaseBackend(database);
}

function upgrade(transaction: IDBTransaction, from: number): void {
  const { db } = transaction;
  for (const name of STORE_NAMES) {
    const { key, indexes } = STORES[name];
    const store = db.objectStoreNames.contains(name) ? transaction.objectStore(name) : db.createObjectStore(name, { keyPath: key });
    for (const index of indexes) if (!store.indexNames.contains(index)) store.createIndex(index, index);
    if (from > 0) migrateStore(store, name, from);
  }
}

function migrateStore(store: IDBObjectStore, name: StoreName, from: number): void {
  const request = store.openCursor();
  request.onsuccess = () => {
    const cursor = request.result;
    if (!cursor) return;
    const record = migrated(name, cursor.value as StoredRecord, from);
    if (record === undefined) cursor.delete();
    else if (record !== cursor.value) cursor.update(record);
    cursor.continue();
  };
}

class DatabaseBackend implements Backend {
  constructor(private readonly database: IDBDatabase) {}

  private store(name: StoreName): IDBObjectStore { return this.database.transaction(name).objectStore(name); }

  all(store: StoreName): Promise<StoredRecord[]> { return settled(this.store(store).getAll()); }
  get(store: StoreName, key: string): Promise<StoredRecord | undefined> { return settled(this.store(store).get(key)); }

  find(store: StoreName, index: string, value: IDBValidKey): Promise<StoredRecord[]> {
    return settled(this.store(store).index(index).getAll(value));
  }

  // In batches: a cursor goes to the database's process and back for each record.
  async each(store: StoreName, visit: (record: StoredRecord) => boolean): Promise<void> {
    for (let range: IDBKeyRange | undefined; ;) {
      const records: StoredRecord[] = await settled(this.store(store).getAll(range, BATCH));
      if (records.some((record) => !visit(record)) || records.length < BATCH) return;
      range = IDBKeyRange.lowerBound(records[BATCH - 1][STORES[store].key], true);
    }
  }

  write(changes: readonly Change[]): Promise<void> {
    return new Promise((resolve, reject) => {
      const names = [...new Set(changes.map((change) => change.store))];
      if (names.length === 0) return resolve();
      const transaction = this.database.transaction(names, "readwrite");
      transaction.oncomplete = () => resolve();
      transaction.onabort = () => reject(transaction.error ?? new Error("The browser did not store the conversation."));
      for (const change of changes) {
        if ("remove" in change) transaction.objectStore(change.store).delete(change.remove);
        else transaction.objectStore(change.store).put(change.put);
      }
      transaction.commit?.();
    });
  }
}
