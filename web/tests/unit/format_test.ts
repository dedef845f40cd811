// Times and places in words.
import assert from "node:assert/strict";
import test from "node:test";
import { elapsed } from "../../src/cluster/duration";
import { joinHost } from "../../src/cluster/join_host";
import { seconds } from "../../src/lib/format";

test("a time is rounded before it is cut into minutes, hours and days", () => {
  const said: [number, string][] = [[0.31, "0.31 s"], [59.7, "59.7 s"], [59.97, "1 min 0 s"], [61, "1 min 1 s"], [119.6, "2 min 0 s"],
    [3599.4, "59 min 59 s"], [3599.7, "1 h 0 min"], [7199, "2 h 0 min"], [9000, "2 h 30 min"], [172_799, "2 days"], [260_000, "3 days"]];
  for (const [value, text] of said) assert.equal(seconds(value), text);
  assert.equal(seconds(undefined), "");
  assert.equal(elapsed(59.4), "59 s");
  assert.equal(elapsed(59.6), "1 min 0 s");
});

test("another machine joins by the page's own address, or by the node's name where that is a loopback", () => {
  const page = (hostname: string) => ({ origin: `http://${hostname}:8600`, hostname });
  assert.equal(joinHost(page("192.168.1.20"), "anna"), "192.168.1.20");
  assert.equal(joinHost(page("localhost"), "anna"), "anna");
  assert.equal(joinHost(page("127.0.0.1"), ""), "127.0.0.1");
  assert.equal(joinHost(page("localhost"), undefined), "localhost");
});
