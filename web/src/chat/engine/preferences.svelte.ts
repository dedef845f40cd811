// The settings of new conversations, presets, and how the view is laid out: kept in this browser, and never thrown away by a send.
import { local, read, write } from "../../lib/storage";
import { cleanSettings, NO_SETTINGS, type Settings } from "./settings";

const KEY = "lockstep.chat";
const PRESETS_MAX = 64;

interface Preset { name: string; settings: Settings }
interface Stored { settings?: unknown; models?: unknown; presets?: unknown; isListOpen?: unknown }

class Preferences {
  settings = $state.raw<Settings>(NO_SETTINGS);
  models = $state.raw<string[]>([]);
  presets = $state.raw<Preset[]>([]);
  isListOpen = $state(true);
  private isRead = false;

  constructor() {
    this.read();
    globalThis.addEventListener?.("storage", ({ key }) => { if (key === KEY) this.read(); });
  }

  private read(): void {
    let stored: Stored = {};
    try {
      stored = JSON.parse(read(local, KEY) ?? "{}") as Stored;
    } catch {
      // Another program wrote it.
    }
    this.settings = cleanSettings(stored.settings);
    this.models = Array.isArray(stored.models) ? stored.models.filter((name) => typeof name === "string") : [];
    this.presets = (Array.isArray(stored.presets) ? stored.presets : []).filter((one) => typeof one?.name === "string")
      .map(({ name, settings }) => ({ name, settings: cleanSettings(settings) }));
    this.isListOpen = stored.isListOpen !== false;
    this.isRead = true;
  }

  // False: the browser stores nothing here, and the change lasts until the tab is closed.
  keep(change: Partial<Pick<Preferences, "settings" | "models" | "presets" | "isListOpen">>): boolean {
    Object.assign(this, change);
    const { settings, models, presets, isListOpen } = this;
    return !this.isRead || write(local, KEY, JSON.stringify({ settings, models, presets, isListOpen }));
  }

  savePreset(name: string, settings: Settings): void {
    const others = this.presets.filter((preset) => preset.name !== name);
    if (others.length >= PRESETS_MAX) throw new Error(`There are ${PRESETS_MAX} presets already: delete one first.`);
    this.keep({ presets: [...others, { name, settings }].sort((a, b) => (a.name < b.name ? -1 : 1)) });
  }

  removePreset(name: string): void { this.keep({ presets: this.presets.filter((preset) => preset.name !== name) }); }
}

export const preferences = new Preferences();
