#include "planner/profiles/profiles_table.h"

namespace lockstep {

// efficiency, kernel_us and exchange_us of the M3 Ultra are a least-squares fit to 19 published
// decode speeds (`lockstep plan --check --fit`); of its 40.1 us per exchange 3 are the link's.
// reserved_gib is what the system keeps for itself. Speeds with "software" are what that reaches.
const std::string_view kMachineProfiles = R"json({
  "mac-studio-m3-ultra": {
    "about": "Mac Studio, M3 Ultra with 80 GPU cores, 512 GB",
    "software": "published GPU software",
    "memory_gib": 512, "reserved_gib": 16, "bandwidth_gb_s": 819, "efficiency": 0.843,
    "kernel_us": 5.74, "exchange_us": 37.1, "prefill_tflops": 20, "idle_w": 10, "load_w": 150,
    "price_usd": 11699,
    "source": ["Apple", "reviews of December 2025: speeds of 1, 2 and 4 machines",
               "600 W for four that decode a dense model, 10 W idle, price with 512 GB"],
    "estimates": ["reserved_gib", "prefill_tflops"]},
  "mac-studio-m3-ultra-256": {
    "about": "Mac Studio, M3 Ultra with 80 GPU cores, 256 GB",
    "software": "published GPU software",
    "memory_gib": 256, "reserved_gib": 12, "bandwidth_gb_s": 819, "efficiency": 0.843,
    "kernel_us": 5.74, "exchange_us": 37.1, "prefill_tflops": 20, "idle_w": 10, "load_w": 150,
    "price_usd": 8099,
    "source": "as mac-studio-m3-ultra",
    "estimates": ["reserved_gib", "prefill_tflops"]},
  "mac-studio-m4-max": {
    "about": "Mac Studio, M4 Max with 40 GPU cores, 128 GB",
    "software": "published GPU software",
    "memory_gib": 128, "reserved_gib": 8, "bandwidth_gb_s": 546, "efficiency": 0.843,
    "kernel_us": 5.74, "exchange_us": 37.1, "prefill_tflops": 12, "idle_w": 10, "load_w": 110,
    "source": "Apple: 546 GB/s, up to 128 GB",
    "estimates": ["reserved_gib", "efficiency", "kernel_us", "exchange_us",
                  "prefill_tflops", "idle_w", "load_w"]},
  "dgx-spark": {
    "about": "NVIDIA DGX Spark (GB10), 128 GB",
    "software": "published GPU software",
    "memory_gib": 119, "reserved_gib": 6, "bandwidth_gb_s": 273, "efficiency": 0.8,
    "kernel_us": 4, "exchange_us": 20, "prefill_tflops": 60, "idle_w": 35, "load_w": 170,
    "price_usd": 3999,
    "source": "NVIDIA: 273 GB/s, 240 W power supply, price of the Founders Edition at launch",
    "estimates": ["memory_gib", "reserved_gib", "efficiency", "kernel_us", "exchange_us",
                  "prefill_tflops", "idle_w", "load_w"]},
  "ai-max-395": {
    "about": "AMD Ryzen AI Max+ 395 (Framework Desktop), 128 GB",
    "software": "published GPU software",
    "memory_gib": 128, "reserved_gib": 8, "bandwidth_gb_s": 256, "efficiency": 0.82,
    "kernel_us": 5, "exchange_us": 25, "prefill_tflops": 20, "idle_w": 12, "load_w": 120,
    "price_usd": 1999,
    "source": ["AMD and Framework: 256 GB/s, 45 to 120 W, price at launch",
               "reviews measure 212 GB/s of the graphics unit"],
    "estimates": ["reserved_gib", "kernel_us", "exchange_us", "prefill_tflops",
                  "idle_w", "load_w"]},
  "epyc-9005": {
    "about": "server with one AMD EPYC 9005, 12 channels of DDR5-6400, 768 GB",
    "memory_gib": 768, "reserved_gib": 8, "bandwidth_gb_s": 614.4, "efficiency": 0.75,
    "kernel_us": 2, "exchange_us": 10, "prefill_tflops": 8, "idle_w": 120, "load_w": 500,
    "source": "12 channels x 6400 MT/s x 8 bytes",
    "estimates": ["reserved_gib", "efficiency", "kernel_us", "exchange_us",
                  "prefill_tflops", "idle_w", "load_w"]},
  "h200": {
    "about": "server with one NVIDIA H200 SXM, 141 GB",
    "software": "published GPU software",
    "memory_gib": 139, "reserved_gib": 2, "bandwidth_gb_s": 4800, "efficiency": 0.8,
    "kernel_us": 3, "exchange_us": 10, "prefill_tflops": 500, "idle_w": 75, "load_w": 700,
    "source": "NVIDIA: 4.8 TB/s, 700 W at most, 989 TFLOPS in BF16",
    "estimates": ["reserved_gib", "efficiency", "kernel_us", "exchange_us",
                  "prefill_tflops", "idle_w"]}
})json";

const std::string_view kLinkProfiles = R"json({
  "tb5-rdma": {"about": "Thunderbolt 5 with RDMA", "kind": "verbs", "latency_us": 3, "gbit_s": 55,
    "source": "the vendor's latency; 50 to 60 of 80 Gbit/s in practice"},
  "tb-tcp": {"about": "Thunderbolt with TCP", "kind": "tcp", "latency_us": 300, "gbit_s": 20,
    "source": "reviews: 300 us", "estimates": ["gbit_s"]},
  "10gbe": {"about": "Ethernet, 10 Gbit/s", "kind": "tcp", "latency_us": 40, "gbit_s": 9.4,
    "estimates": ["latency_us"]},
  "2.5gbe": {"about": "Ethernet, 2.5 Gbit/s", "kind": "tcp", "latency_us": 80, "gbit_s": 2.35,
    "estimates": ["latency_us"]},
  "1gbe": {"about": "Ethernet, 1 Gbit/s", "kind": "tcp", "latency_us": 100, "gbit_s": 0.94,
    "estimates": ["latency_us"]},
  "100gbe-roce": {"about": "Ethernet, 100 Gbit/s with RDMA (RoCE)", "kind": "verbs",
    "latency_us": 2, "gbit_s": 92, "estimates": ["latency_us", "gbit_s"]}
})json";

}  // namespace lockstep
