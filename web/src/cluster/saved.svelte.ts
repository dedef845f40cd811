// State of a form that survives a reload of the page, not the end of the tab. Made while a component is made.
import { read, session, write } from "../lib/storage";
import { merged } from "./stored";

export function saved<T extends object>(name: string, initial: T): T {
  const key = `lockstep.form.${name}`;
  const state = $state(merged(initial, read(session, key)));
  $effect(() => void write(session, key, JSON.stringify(state))); // Without storage it lasts as long as the component.
  return state;
}
