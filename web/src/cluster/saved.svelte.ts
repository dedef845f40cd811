// State of a form that survives a reload of the page, not the end of the tab.
import { merged } from "./stored";

export function saved<T extends object>(name: string, initial: T): T {
  const key = `lockstep.form.${name}`;
  const state = $state(merged(initial, read(key)));
  $effect.root(() => { $effect(() => write(key, JSON.stringify(state))); });
  return state;
}

function read(key: string): string | null {
  try {
    return sessionStorage.getItem(key);
  } catch {
    return null;
  }
}

function write(key: string, text: string): void {
  try {
    sessionStorage.setItem(key, text);
  } catch {
    // Without storage the form lasts as long as the page.
  }
}
