// The fake hub (hub.py) as a process of its own.
import { spawn } from "node:child_process";
import { join } from "node:path";
import { root } from "./node.mjs";

export function startHub() {
  const child = spawn("python3", ["-B", join(root, "web/tests/page/hub.py")], { stdio: ["pipe", "pipe", "inherit"] });
  return new Promise((done, fail) => {
    child.once("error", fail);
    child.once("exit", (code) => fail(new Error(`hub.py ended with ${code}`)));
    child.stdout.once("data", (line) => {
      child.removeAllListeners("exit");
      const tell = (command) => child.stdin.write(`${command}\n`);
      done({ ...JSON.parse(line), hold: (bytes) => tell(`hold ${bytes}`), release: () => tell("release"), close: () => child.stdin.end() });
    });
  });
}
