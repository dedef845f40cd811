// Serves a built page for development: node web/dev.mjs OUT PORT NODE_ADDRESS
// Everything but / and /assets/ goes to the node, as if the node had served the page. The headers are those of the node.
// PORT 0 takes any free port; the address is printed.
import { createServer, request } from "node:http";
import { existsSync, readFileSync } from "node:fs";
import { basename, extname, join } from "node:path";

const [out, port, node] = process.argv.slice(2);
if (!node) {
  console.error("usage: node web/dev.mjs OUT PORT http://localhost:8600");
  process.exit(2);
}
const TYPES = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".woff2": "font/woff2",
  ".svg": "image/svg+xml" };
const POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; " +
  "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; " +
  "trusted-types svelte-trusted-html";
const target = new URL(node);

createServer((from, to) => {
  const path = new URL(from.url, "http://localhost").pathname;
  const file = path === "/" ? join(out, "index.html") : join(out, "assets", basename(path));
  if ((path === "/" || path.startsWith("/assets/")) && existsSync(file)) {
    to.writeHead(200, { "content-type": TYPES[extname(file)] ?? "text/plain", "content-security-policy": POLICY });
    return to.end(readFileSync(file));
  }
  const headers = { ...from.headers, host: target.host };
  if (headers.origin) headers.origin = target.origin;
  const onward = request(target, { path: from.url, method: from.method, headers }, (answer) => {
    to.writeHead(answer.statusCode, answer.headers);
    to.flushHeaders();
    answer.pipe(to);
    answer.on("close", () => { if (!answer.complete) to.destroy(); }); // A connection that the node lost is lost for the page too.
  });
  onward.on("error", () => to.writeHead(502).end());
  to.on("close", () => onward.destroy());
  from.pipe(onward);
}).listen(Number(port), "127.0.0.1", function () { console.log(`http://localhost:${this.address().port}/`); });
