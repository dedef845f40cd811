// auto follows the system; the choice is kept in this browser.
import { local, read, write } from "../lib/storage";

type Theme = "auto" | "light" | "dark";
const KEY = "lockstep.theme";

class ThemeChoice {
  value = $state<Theme>(stored());

  constructor() { this.apply(); }

  set(value: Theme): void {
    this.value = value;
    write(local, KEY, value); // Where nothing is stored the choice lasts until the tab is closed.
    this.apply();
  }

  private apply(): void {
    if (this.value === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = this.value;
  }
}

function stored(): Theme {
  const value = read(local, KEY);
  return value === "light" || value === "dark" ? value : "auto";
}

export const theme = new ThemeChoice();
