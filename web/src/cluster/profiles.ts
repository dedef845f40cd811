// Machines and links that the planner knows by name: the table of src/planner/profiles, as `lockstep plan --help` lists it.

export const MACHINES: { name: string; about: string }[] = [
  { name: "mac-studio-m3-ultra", about: "Mac Studio, M3 Ultra, 512 GB" },
  { name: "mac-studio-m3-ultra-256", about: "Mac Studio, M3 Ultra, 256 GB" },
  { name: "mac-studio-m4-max", about: "Mac Studio, M4 Max, 128 GB" },
  { name: "dgx-spark", about: "NVIDIA DGX Spark, 128 GB" },
  { name: "ai-max-395", about: "AMD Ryzen AI Max+ 395, 128 GB" },
  { name: "epyc-9005", about: "server with an AMD EPYC 9005, 768 GB" },
  { name: "h200", about: "server with an NVIDIA H200, 141 GB" },
];

export const LINKS: { name: string; about: string }[] = [
  { name: "tb5-rdma", about: "Thunderbolt 5 with RDMA" },
  { name: "tb-tcp", about: "Thunderbolt with TCP" },
  { name: "10gbe", about: "Ethernet, 10 Gbit/s" },
  { name: "2.5gbe", about: "Ethernet, 2.5 Gbit/s" },
  { name: "1gbe", about: "Ethernet, 1 Gbit/s" },
  { name: "100gbe-roce", about: "Ethernet, 100 Gbit/s with RDMA (RoCE)" },
];

// Published models whose shapes the planner knows (src/model/shapes/known_shapes.cc), so that they can be planned before a download.
export const PUBLISHED = [
  "llama-3.2-1b", "llama-3.2-3b", "llama-3.1-8b", "llama-3.3-70b", "mistral-7b", "mistral-large-123b", "devstral-small-2-24b",
  "devstral-2-123b", "qwen2.5-0.5b", "qwen2.5-7b", "qwen2.5-72b", "qwen3-0.6b", "qwen3-1.7b", "qwen3-4b", "qwen3-8b", "qwen3-14b",
  "qwen3-32b", "qwen3-30b-a3b", "qwen3-235b-a22b", "qwen3-coder-30b-a3b", "qwen3-coder-480b", "deepseek-v3", "deepseek-r1",
  "deepseek-v3.1", "kimi-k2", "kimi-k2-thinking", "kimi-k2.5", "gpt-oss-20b", "gpt-oss-120b", "glm-4.5-air", "glm-4.5", "glm-4.6",
  "glm-4.7-flash", "minimax-m2", "gemma-4-31b", "qwen3-next-80b-a3b", "qwen3-coder-next", "qwen3.5-27b", "qwen3.5-35b-a3b",
  "qwen3.5-122b-a10b", "qwen3.5-397b-a17b", "qwen3.8-27b", "kimi-linear-48b", "gemma-4-26b-a4b", "gemma-4-e4b", "gemma-4-e2b",
  "deepseek-v3.2", "glm-5", "glm-5.2", "glm-5.3", "glm-5.3-flash", "deepseek-v4-flash", "deepseek-v4-pro", "qwen3.8-flash-next",
];
