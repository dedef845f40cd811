// auto follows the system; the choice is kept in this browser.
type Theme = "auto" | "light" | "dark";
const KEY = "lockstep.theme";

class ThemeChoice {
  value = $state<Theme>(stored());

  constructor() { this.apply(); }

  set(value: Theme): void {
    this.value = value;
    try {
      localStorage.setItem(KEY, value);
    } catch {
      // The choice then lasts until the tab is closed.
    }
    this.apply();
  }

  private apply(): void {
    if (this.value === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = this.value;
  }
}

function stored(): Theme {
  try {
    const value = localStorage.getItem(KEY);
    return value === "light" || value === "dark" ? value : "auto";
  } catch {
    return "auto";
  }
}

export const theme = new ThemeChoice();
