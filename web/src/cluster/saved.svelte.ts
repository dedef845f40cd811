// State of a form that survives a reload of the page, not the end of the tab. Made while a component is made.
import { merged } from "./stored";

export function saved<T extends object>(name: string, initial: T): T {
  const key = `lockstep.form.${name}`;
  const state = $state(merged(initial, read(key)));
  $effect(() => write(key, JSON.stringify(state)));
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
