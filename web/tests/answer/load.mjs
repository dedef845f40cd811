// Imports a TypeScript module of the tests or of the page.
import { build } from "esbuild";

export async function loadTypeScript(path) {
  const entry = new URL(path, import.meta.url).pathname;
  const { outputFiles } = await build({ entryPoints: [entry], bundle: true, platform: "node", format: "esm", write: false });
  return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].text).toString("base64")}`);
}
