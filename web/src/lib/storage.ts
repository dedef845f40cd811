// The browser's storage, which may be refused (a private window) or full: then nothing is read, and what is written is lost.

export type Store = Pick<Storage, "getItem" | "setItem" | "removeItem">;

// Functions, since the mere access may throw.
export const local = (): Store => localStorage;
export const session = (): Store => sessionStorage;

// null if there is nothing.
export function read(store: () => Store, key: string): string | null {
  try {
    return store().getItem(key);
  } catch {
    return null;
  }
}

// False if the browser did not store it.
export function write(store: () => Store, key: string, text: string): boolean {
  try {
    store().setItem(key, text);
    return true;
  } catch {
    return false;
  }
}

export function remove(store: () => Store, key: string): void {
  try {
    store().removeItem(key);
  } catch {
    // Nothing was stored there either.
  }
}
