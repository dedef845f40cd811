// Types of /cluster/status and /cluster/events (docs/http-api.md). Values that the node does not know are absent or null.

export interface NodeStatus {
  id: string; name: string; version: string; address: string; data_host: string;
  state: "alive" | "suspect" | "dead" | "foreign" | "absent"; note: string;
  is_self: boolean; is_coordinator: boolean; is_spare: boolean;
  budget_bytes: number; promised_bytes: number; read_bytes_s: number;
  power_w?: number | null; uptime_s?: number; cores?: number; disk_free_bytes?: number;
}

export interface RankStatus {
  rank: number; pid?: number; node?: string; layers?: [number, number]; share?: number; weight_bytes?: number; state_bytes?: number;
  device?: string; // where it computes: "cpu (avx512, 8 threads)", "vulkan: AMD Radeon RX 7900 XTX (radv)"
}

export interface LinkStatus {
  a: number; b: number; path: string; rails: number; tcp_rails: number; encrypted: boolean; reason: string;
  p50_us: number; p99_us: number; gbit_s: number; a_host?: string; b_host?: string; device?: string; network_note?: string;
}

export interface Loading { read_bytes: number; whole_bytes: number; bytes_s: number; seconds_left?: number }

export interface ModelStatus {
  name: string; state: string; restarts: number; last_error: string; link?: string; stages?: number; context?: number; running?: number;
  group?: number; ranks?: RankStatus[]; links?: LinkStatus[]; loading?: Loading;
  phase?: "waiting" | "placing" | "loading" | "ready" | "unloading"; sentence?: string;
  groups?: { group: number; phase: string; stages: number; running: number }[];
  placement?: { rank: number; node: string; node_name: string; bytes: number; group: number }[];
  wanted?: Record<string, unknown>; disk?: { size_bytes: number; whole_bytes: number } | null;
}

export interface Pull {
  model: string; phase: "waiting" | "listing" | "downloading" | "checking" | "done" | "failed"; sentence?: string;
  read_bytes?: number; whole_bytes?: number; bytes_s?: number; seconds_left?: number; source?: "hub" | "neighbour" | "disk";
}

export interface Happening { at_ms: number; kind: string; sentence: string }
interface Pin { name: string; address: string; pin: string }

export interface Status {
  version: string; cluster?: string; control: boolean; nodes: NodeStatus[]; models: ModelStatus[]; pulls: Pull[]; pins?: Pin[];
  happened: Happening[]; beacon_problem?: string;
}

export interface NodeMeters {
  node: string; cpu_percent?: number; memory_bytes?: number; memory_used_bytes?: number; process_bytes?: number;
  temperature_c?: number; power_w?: number; disk_free_bytes?: number;
}
interface ModelMeters { name: string; tokens_s?: number; prompt_tokens_s?: number; running: number; waiting: number }
interface LinkMeters { model: string; a: number; b: number; p50_us?: number; bytes_s?: number }
export interface Meters { now_ms: number; nodes: NodeMeters[]; models: ModelMeters[]; links: LinkMeters[] }
