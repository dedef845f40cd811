// Builds the page: node web/build.mjs OUT [--gallery]
// Writes OUT/index.html and OUT/assets/NAME.HASH.EXT. The names change with the contents, so browsers may keep assets for ever.
// --gallery adds the view #/gallery, the components with fixed data, for screenshots and accessibility checks.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { build, transform } from "esbuild";
import { compile, compileModule } from "svelte/compiler";

const web = new URL(".", import.meta.url).pathname;

// A warning of the compiler is an error, so that accessibility mistakes stop the build.
function refuse(warnings) {
  if (warnings.length > 0) throw new Error(warnings.map((warning) => warning.toString()).join("\n"));
}

export const svelte = {
  name: "svelte",
  setup(plugin) {
    const styles = new Map();
    plugin.onLoad({ filter: /\.svelte$/ }, ({ path }) => {
      const { js, css, warnings } = compile(readFileSync(path, "utf8"), {
        filename: path, rootDir: web, generate: "client", css: "external", modernAst: true, runes: true,
      });
      refuse(warnings);
      if (!css) return { contents: js.code, loader: "js" };
      styles.set(path, css.code);
      return { contents: `${js.code}\nimport ${JSON.stringify(path + ".css")};`, loader: "js" };
    });
    plugin.onResolve({ filter: /\.svelte\.css$/ }, ({ path }) => ({ path, namespace: "svelte-css" }));
    plugin.onLoad({ filter: /./, namespace: "svelte-css" }, ({ path }) => ({
      contents: styles.get(path.slice(0, -".css".length)), loader: "css",
    }));
    plugin.onLoad({ filter: /\.svelte\.ts$/ }, async ({ path }) => {
      const { code } = await transform(readFileSync(path, "utf8"), { loader: "ts", target: "es2022", sourcefile: path });
      const { js, warnings } = compileModule(code, { filename: path, rootDir: web, generate: "client" });
      refuse(warnings);
      return { contents: js.code, loader: "js" };
    });
  },
};

// The chunks that the entry imports before it runs, so that the browser asks for them at once.
function preloads(outputs, entry) {
  const seen = new Set();
  const visit = (name) => {
    for (const { path, kind } of outputs[name].imports) {
      if (kind === "import-statement" && !seen.has(path)) visit(path, seen.add(path));
    }
  };
  visit(entry);
  return [...seen];
}

async function main(out, gallery) {
  rmSync(out, { recursive: true, force: true });
  mkdirSync(join(out, "assets"), { recursive: true });
  const { metafile } = await build({
    absWorkingDir: web, entryPoints: { main: "src/main.ts" }, bundle: true, splitting: true, format: "esm", minify: true,
    target: ["es2022", "chrome111", "firefox114", "safari16.4"], conditions: ["svelte", "browser", "production"], metafile: true,
    plugins: [svelte], outdir: join(out, "assets"), entryNames: "[name].[hash]", chunkNames: "[name].[hash]",
    assetNames: "[name].[hash]", loader: { ".woff2": "file" }, legalComments: "none", logLevel: "warning",
    define: { GALLERY: String(gallery), "process.env.NODE_ENV": '"production"' },
  });
  const outputs = metafile.outputs;
  const entry = Object.keys(outputs).find((name) => outputs[name].entryPoint === "src/main.ts");
  const address = (name) => `/assets/${basename(name)}`;
  const head = [
    `<link rel="stylesheet" href="${address(outputs[entry].cssBundle)}">`,
    ...preloads(outputs, entry).map((name) => `<link rel="modulepreload" href="${address(name)}">`),
    `<script type="module" src="${address(entry)}"></script>`,
  ];
  const page = readFileSync(join(web, "src/index.html"), "utf8");
  writeFileSync(join(out, "index.html"), page.replace("<!-- HEAD -->", () => head.join("\n  ")));
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  const [out, flag] = process.argv.slice(2);
  if (!out) {
    console.error("usage: node web/build.mjs OUT [--gallery]");
    process.exit(2);
  }
  await main(out, flag === "--gallery");
}
