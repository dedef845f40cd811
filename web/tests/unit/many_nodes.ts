// A status of `count` machines with two models, one cut in every layer over all of them, one in a line of four; links of every kind.
import type { LinkStatus, Meters, NodeStatus, Status } from "../../src/cluster/types";

const GIB = 1 << 30;
const PATHS = ["verbs-rc", "tcp", "verbs-uc", "tcp"];
export const idOf = (at: number): string => at.toString(16).padStart(2, "0").repeat(32);

function node(at: number): NodeStatus {
  return {
    id: idOf(at), name: `studio-${at + 1}`, version: "0.1.0", address: at === 0 ? "" : `10.0.0.${at + 1}:8601`, data_host: "",
    state: at === 2 ? "dead" : at === 3 ? "suspect" : "alive", note: at === 2 ? "no heartbeat since 4 s" : "", is_self: at === 0,
    is_coordinator: at === 1, is_spare: at === 4, budget_bytes: 96 * GIB, promised_bytes: 50 * GIB, read_bytes_s: 400e9, cores: 24,
    uptime_s: 86_000,
  };
}

function link(a: number, b: number): LinkStatus {
  const path = PATHS[(a + b) % PATHS.length]!;
  return { a, b, path, rails: 1 + (a % 2), tcp_rails: 0, encrypted: path === "tcp", reason: path === "tcp" ? "no RDMA device on studio-2" :
    "",
    p50_us: 4 + 10 * ((a * 7 + b) % 9), p99_us: 120, gbit_s: path === "tcp" ? 9.4 : 52 };
}

export function statusOf(count: number): Status {
  const all = Array.from({ length: count }, (_, at) => at);
  const few = all.slice(0, Math.min(4, count));
  const pairs = all.flatMap((a) => all.filter((b) => b > a).map((b) => link(a, b)));
  return {
    version: "0.1.0", cluster: "42c1a7e0", control: true, nodes: all.map(node), pulls: [], happened: [
      { at_ms: 1_000_000, kind: "ready", sentence: "big is ready" },
      { at_ms: 1_060_000, kind: "node_lost", sentence: "studio-3 is lost: no heartbeat since 4 s" },
      { at_ms: 1_060_250, kind: "paused", sentence: "big waits: studio-3 is lost" },
    ],
    models: [
      { name: "big", state: "loading", restarts: 1, last_error: "", group: 0, stages: 1, context: 8192, running: 2, phase: "placing",
        sentence: "studio-3 is lost; the cluster places it again",
        ranks: all.map((at) => ({ rank: at, node: idOf(at), layers: [0, 79] as [number, number], share: 1 + (at % 2) })), links: pairs,
        placement: all.map((at) => ({ rank: at, node: idOf(at), node_name: `studio-${at + 1}`, bytes: 30 * GIB, group: 0 })) },
      { name: "small", state: "ready", restarts: 0, last_error: "", group: 0, stages: few.length, phase: "ready",
        ranks: few.map((at) => ({ rank: at, node: idOf(at), layers: [at * 7, at * 7 + 6] as [number, number], share: 1 })), links: [],
        placement: few.map((at) => ({ rank: at, node: idOf(at), node_name: `studio-${at + 1}`, bytes: 8 * GIB, group: 0 })) },
    ],
  };
}

export function metersOf(count: number, nowMs: number): Meters {
  return {
    now_ms: nowMs,
    nodes: Array.from({ length: count }, (_, at) => at).filter((at) => at !== 2).map((at) => ({ node: idOf(at), cpu_percent: 12 * (at % 8),
      memory_bytes: 128 * GIB, memory_used_bytes: (60 + at) * GIB, temperature_c: 51 + at, power_w: 85 + at, disk_free_bytes: 400 * GIB })),
    models: [{ name: "big", tokens_s: 23.5, prompt_tokens_s: 0, running: 2, waiting: 1 },
      { name: "small", tokens_s: 0, running: 0, waiting: 0 }],
    links: [{ model: "big", a: 0, b: 1, p50_us: 17, bytes_s: 3_000_000 }],
  };
}
