// The browser of the tests: Debian's Chromium, or the one that CHROMIUM names.
import { existsSync } from "node:fs";
import { chromium } from "playwright-core";

const START_MS = 60_000;
const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

const path = () => [process.env.CHROMIUM, ...PLACES].find((place) => place && existsSync(place));

// Ends this process with a sentence if there is no browser.
export function needChromium() {
  if (path()) return;
  console.error("These tests need Chromium: install Debian's chromium, or name a browser with CHROMIUM=/path/to/it.");
  process.exit(1);
}

// A user who is root has no sandbox in Chromium.
export const launch = (flags = []) => chromium.launch({ executablePath: path(), args: ["--no-sandbox", ...flags], timeout: START_MS });
